"""Reference values of Alpha158: the formulas of qlib's Alpha158DL, evaluated window by window with numpy.

    python3 test/vectors/make_alpha158.py > test/vectors/alpha158.json

A window holds the rows since the listing of the stock; missing values are left out, as pandas' rolling functions with
min_periods=1 leave them out. Needs numpy alone.
"""
import json
import numpy as np

rng = np.random.default_rng(158)
DAYS = 90
close = 10 * np.exp(np.cumsum(0.02 * rng.standard_normal(DAYS)))
open_ = close * np.exp(0.01 * rng.standard_normal(DAYS))
high = np.maximum(open_, close) * np.exp(0.01 * rng.random(DAYS))
low = np.minimum(open_, close) * np.exp(-0.01 * rng.random(DAYS))
vwap = (high + low + close) / 3
volume = np.round(1e6 * np.exp(0.5 * rng.standard_normal(DAYS)))
close[40] = close[39]  # no change: neither up nor down
high[35] = high[33] = high[30:36].max()  # a tie
bars = np.stack([open_, high, low, close, volume, vwap]).astype(np.float32).astype(np.float64)
bars[:, :4] = np.nan  # not yet listed
bars[:, 50:53] = np.nan  # suspended
O, H, L, C, V, W = bars
FIRST = 4
E = 1e-12


def ref(x, d):
    return np.concatenate([np.full(d, np.nan), x[:-d]])


def known(x):
    return x[~np.isnan(x)]


def std(x):
    x = known(x)
    return np.std(x, ddof=1) if len(x) > 1 else np.nan


def mean(x):
    x = known(x)
    return x.mean() if len(x) else np.nan


def total(x):
    x = known(x)
    return x.sum() if len(x) else np.nan


def corr(x, y):
    if not (std(x) > 2e-5 and std(y) > 2e-5):
        return np.nan
    both = ~np.isnan(x) & ~np.isnan(y)
    return np.corrcoef(x[both], y[both])[0, 1]


def features(t):
    o, h, l, c, v, w = bars[:, t]
    out = {
        "KMID": (c - o) / o, "KLEN": (h - l) / o, "KMID2": (c - o) / (h - l + E),
        "KUP": (h - max(o, c)) / o, "KUP2": (h - max(o, c)) / (h - l + E),
        "KLOW": (min(o, c) - l) / o, "KLOW2": (min(o, c) - l) / (h - l + E),
        "KSFT": (2 * c - h - l) / o, "KSFT2": (2 * c - h - l) / (h - l + E),
        "OPEN0": o / c, "HIGH0": h / c, "LOW0": l / c, "VWAP0": w / c,
    }
    dc, dv = C - ref(C, 1), V - ref(V, 1)
    ratio, vratio = C / ref(C, 1), np.log(V / ref(V, 1) + 1)
    moved = np.abs(C / ref(C, 1) - 1) * V
    for d in [5, 10, 20, 30, 60]:
        win = slice(max(FIRST, t - d + 1), t + 1)
        cw, hw, lw, vw = C[win], H[win], L[win], V[win]
        x = np.arange(d - len(cw) + 1, d + 1, dtype=float)
        ok = ~np.isnan(cw)
        slope = intercept = rsq = np.nan
        if ok.sum() > 1:
            slope, intercept = np.polyfit(x[ok], cw[ok], 1)
            rsq = np.corrcoef(x[ok], cw[ok])[0, 1] ** 2
        up, down = total(np.maximum(dc[win], 0)), total(np.maximum(-dc[win], 0))
        vup, vdown = total(np.maximum(dv[win], 0)), total(np.maximum(-dv[win], 0))
        change, vchange = total(np.abs(dc[win])), total(np.abs(dv[win]))
        with np.errstate(invalid="ignore"):
            rises, falls = (dc[win] > 0).mean(), (dc[win] < 0).mean()
        k = known(cw)
        imax, imin = np.nanargmax(hw) + 1, np.nanargmin(lw) + 1
        rank = (np.sum(k < c) + (np.sum(k == c) + 1) / 2) / len(k)
        values = {
            "ROC": C[t - d] / c if t >= d else np.nan, "MA": mean(cw) / c, "STD": std(cw) / c,
            "BETA": slope / c, "RSQR": rsq, "RESI": (c - (slope * d + intercept)) / c,
            "MAX": np.nanmax(hw) / c, "MIN": np.nanmin(lw) / c,
            "QTLU": np.quantile(k, 0.8) / c, "QTLD": np.quantile(k, 0.2) / c, "RANK": rank,
            "RSV": (c - np.nanmin(lw)) / (np.nanmax(hw) - np.nanmin(lw) + E),
            "IMAX": imax / d, "IMIN": imin / d, "IMXD": (imax - imin) / d,
            "CORR": corr(cw, np.log(vw + 1)), "CORD": corr(ratio[win], vratio[win]),
            "CNTP": rises, "CNTN": falls, "CNTD": rises - falls,
            "SUMP": up / (change + E), "SUMN": down / (change + E), "SUMD": (up - down) / (change + E),
            "VMA": mean(vw) / (v + E), "VSTD": std(vw) / (v + E),
            "WVMA": std(moved[win]) / (mean(moved[win]) + E),
            "VSUMP": vup / (vchange + E), "VSUMN": vdown / (vchange + E), "VSUMD": (vup - vdown) / (vchange + E),
        }
        out.update({f"{name}{d}": value for name, value in values.items()})
    return out


def plain(x):
    return None if np.isnan(x) else float(x)


cases = [{"day": t, "features": {k: plain(v) for k, v in features(t).items()}} for t in [4, 5, 9, 38, 49, 53, 60, 89]]
print(json.dumps({"fields": ["open", "high", "low", "close", "volume", "vwap"],
                  "bars": [[plain(x) for x in row] for row in bars], "cases": cases}))
