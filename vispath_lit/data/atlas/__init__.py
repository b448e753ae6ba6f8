"""Atlas: the embedded multimodal graph and its questions."""
