"""Calibrating: measure on the user's own memories what a cosine of their embedder means (D28a).

Related pairs are memories that follow each other in a thread, and memories with a few of their own words (which is what
a question about them looks like). Unrelated pairs are drawn at random.
"""

import random
from dataclasses import asdict, dataclass
from uuid import UUID

from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.errors import InvalidInput
from recollect.memories.rules.contract import checked_space_settings
from recollect.providers.embedders import embed_readable
from recollect.recall.rules.ranking import Calibration, calibration_of, histogram, measured_calibration
from recollect.recall.sql import samples
from recollect.store.database import Transaction

PAIRS = 400
REMEMBERED = 200
WORDS_LEFT_OUT = 0.6


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """A calibration as measured, the one in use, and the two distributions behind it in twentieths of 0 to 1."""

    model: str
    current: Calibration
    proposed: Calibration
    unrelated: tuple[int, ...]
    related: tuple[int, ...]


async def measure(core: Core, space_id: UUID) -> Measurement:
    """Look at the user's own memories; nothing is stored."""
    embedder = core.embedder()
    async with core.transaction(space_id) as db:
        space = await spaces.by_id(db)
        drawn = await samples.some(db, model=embedder.model, most=PAIRS)
        earlier, other = await samples.neighbours(db, model=embedder.model, most=REMEMBERED)
    asked = await embed_readable(embedder, [_few_words(text) for text in drawn.texts[:REMEMBERED]])
    remembered = [vector @ own for vector, own in zip(asked, drawn.vectors, strict=False) if vector is not None]
    related = [*remembered, *(earlier * other).sum(1)]
    half = len(drawn.texts) // 2
    unrelated = list((drawn.vectors[:half] * drawn.vectors[half : 2 * half]).sum(1))
    return Measurement(
        model=embedder.model,
        current=calibration_of(space.settings, embedder.model),
        proposed=measured_calibration([float(x) for x in unrelated], [float(x) for x in related]),
        unrelated=tuple(histogram(unrelated)),
        related=tuple(histogram(related)),
    )


async def use(core: Core, space_id: UUID, model: str, calibration: Calibration) -> None:
    """From now on, this space's searches use this calibration for this model."""
    if model != core.embedder().model:
        raise InvalidInput(f"{model!r} is not the embedder in use, {core.embedder().model!r} is.", field="model")
    checked_space_settings({"calibrations": {model: asdict(calibration)}})
    async with core.database.owner() as connection:
        space = await spaces.by_id(Transaction(connection, space_id))
        calibrations = {**space.settings.get("calibrations", {}), model: asdict(calibration)}
        await spaces.change_settings(connection, space_id, {**space.settings, "calibrations": calibrations})


def _few_words(text: str) -> str:
    """A memory as somebody would half remember it: some of its words, the same ones each time."""
    words = text.split()
    chance = random.Random(text)
    return " ".join(word for word in words if chance.random() > WORDS_LEFT_OUT) or text
