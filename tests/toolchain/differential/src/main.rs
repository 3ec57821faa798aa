//! Native side: reads `seed mode iterations` per line, prints the hash per line.

use differential::cases;

fn main() {
    for line in std::io::stdin().lines() {
        let line = line.expect("input is text");
        let numbers: Vec<u64> = line
            .split(' ')
            .map(|word| word.parse().expect("three numbers per line"))
            .collect();
        println!(
            "{}",
            cases::run(numbers[0], numbers[1] as u8, numbers[2] as u32)
        );
    }
}
