"""Values as people and scripts read them: amounts, tables, JSON."""
