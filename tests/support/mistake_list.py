"""Mistakes that people make at the command line, by subject.

Owns: the list. Never: what troth says about them. Next: mistakes.py makes them.
"""

from collections.abc import Iterator

from support.mistakes import Mistake

CREATE = "run create --config smoke.toml --data data --key authority.json"
JOIN = "join run.toml --data data --key stranger.json --device cpu"
PREPARE = "data prepare --text notes.txt"
CASE = "--round 0 --target 0"
CALIBRATE = "calibrate --config smoke.toml"

Told = tuple[str, str] | tuple[str, str, int]
"""Title, command, and the exit code if it is not 1. A star behind the title: see `Mistake`."""

_WORDS: tuple[Told, ...] = (
    ("a command that does not exist *", "staus RUN", 2),
    ("an option that does not exist *", "status RUN --wach", 2),
    ("an argument forgotten *", "run show", 2),
    ("an option forgotten", "run pause RUN", 2),
    ("a number that is none *", "checkpoint show RUN --round newest", 2),
)
_CHAIN: tuple[Told, ...] = (
    ("a node that is not there *", "status RUN --rpc http://127.0.0.1:9"),
    ("an address of a node without http", "status RUN --rpc 127.0.0.1"),
    ("the websocket of a node instead of its JSON-RPC", "status RUN --rpc http://127.0.0.1:8900"),
    ("the address of a websocket", "status RUN --rpc ws://127.0.0.1:8900"),
    ("an empty address of a node *", "status RUN --rpc ''", 2),
    ("an address that is none", "status nonsense"),
    ("a run's file that is missing", "status none.toml"),
    ("a config instead of a run's file", "join smoke.toml --key stranger.json"),
    ("a damaged file of a run *", "status broken.toml"),
    ("the address of a key instead of a run", "run show OWNER_ADDRESS"),
    ("a run that is not on this chain", "run show BROKE_ADDRESS"),
    ("a program that is not on this chain", "status RUN --program-id BROKE_ADDRESS"),
    ("a program that is another one", "status RUN --program-id OWNER_ADDRESS"),
    ("an address that was cut off", "program show 11111111"),
    ("a picture of a log that is missing", "plot none.jsonl --out run.svg"),
    ("an airdrop to something that is no address", "localnet airdrop nobody 1"),
    ("an airdrop of words", "localnet airdrop OWNER_ADDRESS much"),
    ("an airdrop below zero", "localnet airdrop OWNER_ADDRESS -5"),
    ("an airdrop to a file without a key", "localnet airdrop garbage.json 1"),
)
_KEYS: tuple[Told, ...] = (
    ("a new key over an old one", "keys new owner.json"),
    ("a key file that is missing", "keys show none.json"),
    ("a key file that holds no key", "keys show garbage.json"),
    ("a key file that is too short", "keys show short.json"),
    ("a key file whose halves do not belong together", "keys show halves.json"),
)
_CONFIG: tuple[Told, ...] = (
    ("a config file that is missing", "run economics --config none.toml"),
    ("a preset that does not exist", "run init --preset huge --out new.toml"),
    ("a config file that is no TOML *", "run economics --config broken.toml"),
    ("a key with a slip in a config file", "run economics --config typo.toml"),
    ("a setting without a value", "run economics --set schedule.rounds"),
    ("a setting with a slip", "run economics --set schedule.round=3"),
    ("a learning rate in words", "run economics --set schedule.lr=fast"),
    ("a learning rate as if its integer were it", "run economics --set schedule.lr_nano=0.003"),
    ("a learning rate twice", "run economics --config twice.toml"),
    ("an amount without a unit", "run economics --set chain.min_stake=lots"),
    ("a setting that is out of range", "run economics --set chain.capacity=1000"),
    ("settings that contradict each other", "run economics --set model.hidden_size=63"),
    ("an unknown preset", "run economics --set chain.preset=mainnet"),
    ("settings beside a run", "run economics RUN --set schedule.rounds=3"),
    ("an amount that is none", "run economics --reward lots"),
    ("more decimals than a SOL has", "run economics --reward 0.0000000001"),
    ("a share that is none", "run economics --sampling 120%"),
)
_DATA: tuple[Told, ...] = (
    ("no source", "data prepare --out new", 2),
    ("two sources", f"{PREPARE} --stdlib --out new", 2),
    ("a file before --text", "data prepare notes.txt --stdlib --out new", 2),
    ("a text that is missing", "data prepare --text none.txt --out new"),
    ("a text that is too short", "data prepare --text tiny.txt --out new"),
    ("a folder that holds something else", f"{PREPARE} --out full"),
    ("a negative length", f"{PREPARE} --out new --sequence-tokens -1"),
    ("nothing held out", f"{PREPARE} --out new --validation-ppm 0"),
    ("a tokenizer that is missing", f"{PREPARE} --out new --tokenizer none.json"),
    ("a tokenizer that is none", f"{PREPARE} --out new --tokenizer notes.txt"),
    (
        "an end token that the tokenizer lacks",
        f"{PREPARE} --out new --tokenizer tokenizer.json --end-token '</s>'",
    ),
    ("an end token without a tokenizer", f"{PREPARE} --out new --end-token '</s>'", 2),
    ("files of a run from another scheme", "data fetch RUN --out new --from ftp://a:1"),
)
_CREATE: tuple[Told, ...] = (
    ("a data set that is missing", f"{CREATE.replace('data data', 'data none')}"),
    (
        "a key without money",
        f"{CREATE.replace('authority', 'broke')} --name other --out other.toml",
    ),
    ("a vocabulary that is smaller than the data's", f"{CREATE} --set model.vocab_size=200"),
    ("another length of sequences than the data's", f"{CREATE} --set data.sequence_tokens=32"),
    ("a stake that is too small for the reward", f"{CREATE} --set chain.min_stake_lamports=100"),
    ("windows that are too short for an appeal", f"{CREATE} --set chain.vesting_slots=100"),
    ("a file in the way of the run's file", f"{CREATE} --name other --out taken.toml"),
    ("a council that is no address", f"{CREATE} --council nobody"),
    ("a negative amount", f"{CREATE} --fund=-1"),
    (
        "bounds of the judge that nobody measured, on a public cluster",
        f"{CREATE} --set judge.calibrated=false --rpc http://203.0.113.7:8899",
    ),
    ("bounds of given weights without these", f"{CALIBRATE} --set start.weights=given"),
    ("bounds of drawn weights, and a folder of others", f"{CALIBRATE} --start full"),
)
_RUN: tuple[Told, ...] = (
    ("a pause with another key than the authority's", "run pause RUN --key stranger.json"),
    ("money for the pool from another key", "run fund RUN --sol 1 --key stranger.json"),
    ("more money than the key has", "run fund RUN --sol 1000000 --key authority.json"),
    ("the end of a pause that is none", "run resume RUN --key authority.json"),
    ("an update of nothing", "run update-params RUN --key authority.json"),
    (
        "an update of what is fixed",
        "run update-params RUN --key authority.json --set chain.ring=20",
    ),
    (
        "an update beyond the limit",
        "run update-params RUN --key authority.json --set chain.commit_slots=5000",
    ),
    ("the end of a run that has not waited", "run cancel RUN --key authority.json"),
    ("closing a run that is not over", "run close RUN --key authority.json"),
)
_JOIN: tuple[Told, ...] = (
    ("a role that does not exist", f"{JOIN} --role judge"),
    ("a folder without a data set", f"{JOIN.replace('data data', 'data full')}"),
    ("another data set than the run's", f"{JOIN.replace('data data', 'data other/set')}"),
    ("less than the least stake", f"{JOIN} --stake-sol 0.01"),
    # --anyway: a machine full of tests is a slow one, and would be refused for that, too.
    ("a key that cannot pay the stake", f"{JOIN.replace('stranger', 'poor')} --anyway"),
    ("a device that does not exist", f"{JOIN.replace('cpu', 'tpu')}"),
    ("an address to listen at that is none", f"{JOIN} --listen here"),
    ("all interfaces, and no address for others", f"{JOIN} --listen 0.0.0.0:7000"),
    ("an address for others, and no listening", f"{JOIN} --listen none --endpoint http://a:1"),
    ("an address for others of another scheme", f"{JOIN} --endpoint ftp://203.0.113.7:21"),
    ("a hub that is none", f"{JOIN} --hub hub.example"),
    ("a store that is none", f"{JOIN} --store s3:bucket"),
)
_MEMBER: tuple[Told, ...] = (
    ("a claim before anything has vested", "claim RUN --key owner.json"),
    ("a withdrawal before its time", "withdraw RUN --key left.json"),
    ("a withdrawal of stake that must stay", "withdraw RUN --unbond 0.05 --key owner.json"),
    ("leaving twice", "leave RUN --key left.json"),
    ("leaving with a key that never joined", "leave RUN --key stranger.json"),
    ("a stake of a key that never joined", "stake show RUN --key stranger.json"),
    ("adding nothing to a stake", "stake top-up RUN 0 --key owner.json"),
    ("adding more than the key has", "stake top-up RUN 1000 --key owner.json"),
    ("adding to a stake after leaving", "stake top-up RUN 1 --key left.json"),
    ("an address without http", "set-endpoint RUN --endpoint 203.0.113.7:9000 --key owner.json"),
)
_CASES: tuple[Told, ...] = (
    (
        "a kind of case that does not exist",
        f"case open RUN {CASE} --kind magic --key stranger.json",
    ),
    ("possession of nothing", f"case open RUN {CASE} --kind possession --key stranger.json"),
    ("a subject that the kind has not", f"case open RUN {CASE} --subject 1 --key stranger.json"),
    ("a case about a round that is not closed", f"case open RUN {CASE} --key stranger.json"),
    ("a case that does not exist", f"case show RUN {CASE}"),
    ("an appeal against nothing", f"case appeal RUN {CASE} --key owner.json"),
    ("a reversal with another key than the council's", f"case reverse RUN {CASE} --key owner.json"),
)
_WEIGHTS: tuple[Told, ...] = (
    ("a checkpoint that does not exist", "checkpoint show RUN --round 7"),
    ("weights that are missing", "checkpoint verify none"),
    ("a tokenizer that is missing", "checkpoint export RUN --out model --tokenizer none.json"),
    ("a folder in the way", "checkpoint export RUN --out full"),
)
_HUB: tuple[Told, ...] = (
    ("a hub for something that is no run", "hub --run nonsense --dir hub --listen 127.0.0.1:0"),
    ("a hub that listens nowhere", "hub --run RUN --dir hub --listen here"),
)
_CHAPTERS = {
    "Words of the command line": _WORDS,
    "Chain and addresses": _CHAIN,
    "Key files": _KEYS,
    "Settings and config files": _CONFIG,
    "Data": _DATA,
    "Creating a run": _CREATE,
    "Looking after a run": _RUN,
    "Joining": _JOIN,
    "Stake and rewards": _MEMBER,
    "Cases": _CASES,
    "Weights": _WEIGHTS,
    "Hubs": _HUB,
}


def _all() -> Iterator[Mistake]:
    for subject, told in _CHAPTERS.items():
        for one in told:
            yield Mistake(subject, *one)


MISTAKES = tuple(_all())
