"""`troth set-endpoint` refuses what no participant could be reached at, before it asks anybody."""

import pytest

RUN = "1" * 32


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "203.0.113.7:9000",
        "ftp://a:1",
        "http://a:1/path",
        "http://" + "a" * 90 + ".example:80",
        "http://xn--:1",
        "http://ärger.example:80",
        "http://a :1",
    ],
)
def test_an_address_that_is_none_is_refused(cli, tmp_path, endpoint):
    key = tmp_path / "owner.json"
    key.write_text(str(list(range(64))))
    words = ("set-endpoint", RUN, "--key", str(key), f"--endpoint={endpoint}")
    error = cli.refused(*words)
    assert error["kind"] == "EndpointError"
    assert "http://203.0.113.7:9000" in error["next_step"]


def test_another_scheme_is_named_with_those_that_work(cli, tmp_path):
    key = tmp_path / "owner.json"
    key.write_text(str(list(range(64))))
    error = cli.refused("set-endpoint", RUN, "--key", key, "--endpoint", "ftp://203.0.113.7:21")
    assert error["expected"] == "an endpoint that begins with http:// or https://"
    assert error["found"] == "ftp://"
