"""What the facts add up to: pure folds and pure sums, without clock, file, thread or chance.

`fold.fold` turns facts into one frozen `state.SessionState`; `phases`, `quantities/` (one file a metric) and `gaps`
work out figures of one answer; `contract` writes them as the JSON object of `homeai ask --json`, `summary` as one line,
and `view` as what a screen shows at one moment. The same facts give the same figures, live or read from a record.
"""
