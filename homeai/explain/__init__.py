"""Why an answer took as long as it did: pure rules from figures to causes, in plain words, with the sums.

`explain(state, answer_id)` runs every rule of `rules/` and ranks what they find; `predict` says beforehand what an
answer should take. The same facts give the same explanation, live or from a record.
"""

from homeai.explain.context import AnswerContext as AnswerContext
from homeai.explain.explanation import Explanation as Explanation
from homeai.explain.explanation import explain as explain
from homeai.explain.finding import Finding as Finding
from homeai.explain.finding import Term as Term
from homeai.explain.predict import Prediction as Prediction
from homeai.explain.predict import predict as predict
