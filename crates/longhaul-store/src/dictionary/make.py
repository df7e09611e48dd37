"""Makes 1.zdict of 1.txt: the text, and before it how often which letter is met in entries of journals.

Run once, in the root of the repository: `python3 crates/longhaul-store/src/dictionary/make.py`. What stores
were written with must never change: a better dictionary is 2.zdict, with a mark of its own in packing.rs.
The entries that letters are counted in are made of the documents and sources of this repository.
"""

import ctypes
import glob
import json
import random

FOLDER = "crates/longhaul-store/src/dictionary/"
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"


class Parameters(ctypes.Structure):
    _fields_ = [("level", ctypes.c_int), ("notification", ctypes.c_uint), ("id", ctypes.c_uint)]


def message(role, block):
    time = f"17{random.randrange(10**8):08}000000"
    return f'{{"message":{{"role":"{role}","blocks":[{block}],"time":{time}}}}}'


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def of_documents():
    for path in sorted(glob.glob("docs/*.md") + ["README.md", "CHANGELOG.md"]):
        for at, part in enumerate(open(path).read().split("\n\n")):
            yield message("user" if at % 2 else "assistant", f'{{"text":{{"text":{quoted(part)}}}}}')


def of_sources():
    for path in sorted(glob.glob("crates/*/src/**/*.rs", recursive=True) + glob.glob("crates/*/tests/*.rs")):
        lines = open(path).read().split("\n")
        for at in range(0, len(lines), 30):
            call = "toolu_01" + "".join(random.choice(LETTERS) for _ in range(22))
            part = lines[at : at + 30]
            if at % 3 == 0:
                part = [f"{at + n + 1:6}\t{line}" for n, line in enumerate(part)]
            text = quoted("\n".join(part))
            yield message("tool", f'{{"tool_result":{{"id":"{call}","name":"Read","text":{text}}}}}')
            arguments = f'{{"file_path": {quoted(path)}}}'
            yield message("assistant", f'{{"tool_call":{{"id":"{call}","name":"Read","arguments":{arguments}}}}}')


def of_requests():
    number = random.randrange
    for ticket in range(500):
        yield (
            f'{{"sent":{{"ticket":{ticket},"time":17{number(10**8):08}{number(1000):03}000,'
            f'"size":{{"counted":{number(10**5)},"answers":{ticket},"rough":false}},"prompt":{number(10**5)},'
            f'"billed":{{"read":{number(10**5)},"written":{number(2000)}}},'
            f'"broke":false,"cold":false,"closed":false}}}}'
        )


def main():
    random.seed(1)
    samples = [entry.encode() for entry in [*of_documents(), *of_sources(), *of_requests()]]
    random.shuffle(samples)
    sizes = (ctypes.c_size_t * len(samples))(*map(len, samples))
    content = open(FOLDER + "1.txt", "rb").read()
    made = ctypes.create_string_buffer(len(content) + 4096)
    finalize = ctypes.CDLL("libzstd.so.1").ZDICT_finalizeDictionary
    finalize.restype = ctypes.c_size_t
    finalize.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, Parameters,
    ]
    length = finalize(
        made, len(made), content, len(content), b"".join(samples), ctypes.addressof(sizes), len(samples),
        Parameters(5, 0, 1),
    )
    assert length <= len(made), "zstd refused the samples"
    open(FOLDER + "1.zdict", "wb").write(made.raw[:length])


main()
