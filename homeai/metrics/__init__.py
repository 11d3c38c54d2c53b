"""What the facts add up to: pure folds and pure sums, without clock, file, thread or chance.

`fold.fold` turns facts into one frozen `state.SessionState` (`answer_fold` those of one answer); `phases`, `gaps` and
`quantities/` (one file a metric) work out figures of one answer; `contract` writes them as the JSON object of
`homeai ask --json`, `summary` as one line, and `view` as what a screen shows at one moment. The same facts give the
same figures, live or read from a record.
"""
