"""Makes oracle.json, the figures that shift_test.go holds the package against.

pip install scipy statsmodels; python oracle.py > oracle.json

The interval of the shift is found by inverting scipy's test: the shifts of y that
the exact (or, above 1024 pairs, the asymptotic) test does not reject.
"""
import json
import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests

rng = np.random.default_rng(7)
out = {"compare": [], "median": [], "holm": [], "bound": []}
for n, m, shift, confidence, digits in [
    (3, 3, 0, .95, 3), (5, 5, 1, .95, 3), (5, 8, 0.5, .99, 3), (10, 10, 0, .99, 3), (10, 12, 2, .95, 3),
    (12, 7, -1, .99, 3), (20, 20, 0.3, .99, 3), (31, 33, 0.2, .95, 4), (50, 50, 0.1, .99, 4),
    (6, 6, 1, .95, 0), (15, 15, 0, .99, 0),
]:
    x = np.round(rng.normal(10, 1, n), digits)
    y = np.round(rng.normal(10 + shift, 1, m), digits)
    d = np.sort((y[:, None] - x[None, :]).ravel())
    tied = len(np.unique(np.concatenate([x, y]))) < n + m
    p = float(stats.mannwhitneyu(x, y, method="exact" if not tied and n * m <= 324 else "asymptotic").pvalue)
    case = {"x": x.tolist(), "y": y.tolist(), "confidence": confidence, "shift": float(np.median(d))}
    if not tied or n * m > 324:
        case["p"] = p
    if not tied and len(np.unique(np.round(d, 9))) == n * m:
        ok = []
        edges = np.concatenate([[d[0] - 1], d, [d[-1] + 1]])
        method = "exact" if n * m <= 1024 else "asymptotic"
        for a, b in zip(edges[:-1], edges[1:]):
            t = (a + b) / 2
            if stats.mannwhitneyu(x, y - t, method=method).pvalue > 1 - confidence:
                ok.append((a, b))
        case["low"], case["high"] = float(max(ok[0][0], d[0])), float(min(ok[-1][1], d[-1]))
    out["compare"].append(case)
for n, confidence in [(6, .95), (9, .95), (10, .99), (20, .95), (35, .99)]:
    x = np.round(rng.normal(0, 1, n), 3)
    s = np.sort(x)
    k = max(int(stats.binom.ppf((1 - confidence) / 2, n, .5)), 1)
    while k > 1 and 2 * stats.binom.cdf(k - 1, n, .5) > 1 - confidence:
        k -= 1
    out["median"].append({"x": x.tolist(), "confidence": confidence, "median": float(np.median(x)), "low": float(s[k - 1]),
                          "high": float(s[n - k]), "coverage": float(1 - 2 * stats.binom.cdf(k - 1, n, .5))})
for p in [[.01, .04, .03, .005], [.2, .2, .9], [.001], [.02, .02, .02, .5, .011]]:
    out["holm"].append({"p": p, "adjusted": multipletests(p, method="holm")[1].tolist()})
for n in (5, 10, 20, 50):
    out["bound"].append({"n": n, "confidence": .99, "factor": float(np.sqrt((n - 1) / stats.chi2.ppf(.01, n - 1)))})
print(json.dumps(out, indent=1).replace(",\n    ", ", "))
