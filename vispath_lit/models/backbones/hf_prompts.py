"""What a vision-language model is asked at a hop, and how text and picture are made safe for it."""

from __future__ import annotations

import re
from typing import Any

from PIL import Image as PILImage
from PIL.Image import Image

from vispath_lit.encoders.efficientnet import on_white
from vispath_lit.errors import ConfigError
from vispath_lit.models.backbones.states import readable

ASK = "Which relation should the next step follow?"
SHORTEST = 32  # pixels; below, the patches of some families vanish
STRETCH = 8  # times the shorter side; families refuse or mangle longer strips


class Prompts:
    """Builds the prompt of a state: picture, question, the paths walked so far, and what is asked.

    Words of a question never act as control tokens: whatever the tokenizer would read as one is blanked.

    Args:
        processor: of the model.
        max_tokens: of question and statement together; the question is cut last.
    """

    def __init__(self, processor: Any, max_tokens: int) -> None:
        self.processor = processor
        self.tokenizer = processor.tokenizer
        self.max_tokens = max_tokens
        control = {*self.tokenizer.all_special_tokens, *self.tokenizer.get_added_vocab()}
        longest_first = sorted(control, key=lambda token: (-len(token), token))
        self._control = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._check()

    def __call__(self, question: str, statement: str, picture: bool) -> str:
        """The prompt with one image token where there is a picture."""
        question, used = self._cut(question, self.max_tokens)
        statement, _ = self._cut(statement, self.max_tokens - used)
        words = f"Question: {question}"
        if statement:
            words += f"\nPaths walked so far: {statement}"
        words += f"\n{ASK}"
        if getattr(self.processor, "chat_template", None) is None:
            return f"{self.processor.image_token}\n{words}" if picture else words
        content = [{"type": "image"}] * picture + [{"type": "text", "text": words}]
        prompt = self.processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
        )
        return str(prompt)

    def _cut(self, text: str, limit: int) -> tuple[str, int]:
        """The text's first `limit` tokens, control tokens blanked, and how many they are."""
        text = self._control.sub(" ", readable(text)).strip()
        if limit < 1 or not text:
            return "", 0
        offsets = self.tokenizer(
            text, add_special_tokens=False, truncation=True, max_length=limit, return_offsets_mapping=True
        )["offset_mapping"]
        return text[: offsets[-1][1] if offsets else 0], len(offsets)

    def _check(self) -> None:
        """Renders one prompt.

        Raises:
            ConfigError: a chat template that fails or loses the picture or the question.
        """
        try:
            prompt = self("wordless", "", True)
        except Exception as error:  # a template is a program of the model's folder
            raise ConfigError(f"the chat template of vlm.model fails: {error}") from error
        if "wordless" not in prompt or prompt.count(self.processor.image_token) != 1:
            raise ConfigError(
                f"the chat template of vlm.model gives {prompt!r:.200}; expected the question and one "
                f"{self.processor.image_token} for the picture"
            )


def fitted(image: Image, max_pixels: int) -> Image:
    """The picture in RGB with at most `max_pixels`, neither tiny nor a strip: what is missing is white."""
    image = on_white(image)
    width, height = image.size
    sheet = max(width, -(-height // STRETCH)), max(height, -(-width // STRETCH))
    scale = min(1.0, (max_pixels / (sheet[0] * sheet[1])) ** 0.5)
    scale = max(scale, SHORTEST / min(sheet))
    size, sheet = ((max(1, int(w * scale)), max(1, int(h * scale))) for w, h in (image.size, sheet))
    if size != image.size:
        image = image.resize(size, PILImage.Resampling.BICUBIC)
    if size == sheet:
        return image
    padded = PILImage.new("RGB", sheet, "white")
    padded.paste(image, ((sheet[0] - size[0]) // 2, (sheet[1] - size[1]) // 2))
    return padded
