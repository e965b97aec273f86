"""Reference values of Alpha360: some columns of qlib's Alpha360DL, whose expressions are written out and evaluated one by
one on the bars of alpha158.json.

    python3 test/vectors/make_alpha360.py > test/vectors/alpha360.json

Columns in qlib's order: for each of close, open, high, low, vwap the expressions Ref($field, i)/$close, for volume
Ref($volume, i)/($volume+1e-12), each with i = 59, 58, ..., 0.
"""
import json
import os

with open(os.path.join(os.path.dirname(__file__), "alpha158.json")) as file:
    source = json.load(file)
series = dict(zip(source["fields"], source["bars"]))

columns = []
for field in ["close", "open", "high", "low", "vwap", "volume"]:
    for i in range(59, -1, -1):
        columns.append((f"{field.upper()}{i}", field, i))


def value(day, field, i):
    base = series["volume"][day] + 1e-12 if field == "volume" else series["close"][day]
    back = series[field][day - i] if day >= i else None
    return None if back is None else back / base


cases = []
for day in [20, 60, 89]:
    some = [(at, name, value(day, field, i)) for at, (name, field, i) in enumerate(columns) if i in (59, 38, 37, 16, 1, 0)]
    cases.append({"day": day, "columns": some})
json.dump({"count": len(columns), "cases": cases}, __import__("sys").stdout, indent=1)
