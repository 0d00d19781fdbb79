"""Late interaction: signs are packed as they stand, and the similarity is MaxSim over them."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.engines.late_interaction import pack, similarity


def unit(*shape: int, seed: int = 5) -> np.ndarray:
    """Return random unit rows, float32."""
    rows = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def maxsim(query: np.ndarray, chunks: list[np.ndarray]) -> np.ndarray:
    """Compare each query row with the signs of each chunk's rows, one by one."""
    signs = [np.where(rows > 0, 1, -1) / np.sqrt(rows.shape[1]) for rows in chunks]
    return np.array([[max(float(row @ token) for token in chunk) for row in query] for chunk in signs])


def test_a_token_takes_a_bit_per_dimension() -> None:
    """The packed size is the number of tokens times the dimensions in whole bytes, whatever the dimensions."""
    assert len(pack(unit(7, 384))) == 7 * 48
    assert len(pack(unit(3, 20))) == 3 * 3
    assert pack(np.zeros((0, 384), dtype=np.float32)) == b""


def test_the_bits_are_the_signs() -> None:
    """A positive dimension is a one, the first one highest; zero and below are zeros."""
    tokens = np.array([[0.5, -0.5, 0.0, 0.1, 0.2, -0.3, -0.4, 0.6, 0.7]], dtype=np.float32)
    assert pack(tokens) == bytes([0b10011001, 0b10000000])


@pytest.mark.parametrize("dimensions", [16, 20, 384])
def test_similarity_is_maxsim_over_signs(dimensions: int) -> None:
    """Each value is the best product of a query token with the signs of the chunk's tokens, chunk by chunk."""
    query = unit(5, dimensions)
    chunks = [unit(length, dimensions, seed=length) for length in (1, 9, 2, 40, 1)]
    found = similarity(query, [pack(chunk) for chunk in chunks])
    assert (found.dtype, found.shape) == (np.float32, (5, 5))
    np.testing.assert_allclose(found, maxsim(query, chunks), atol=1e-5)


def test_more_tokens_than_a_block() -> None:
    """Chunks that lie across the blocks of the work are compared like any other."""
    query, chunks = unit(3, 16), [unit(127, 16, seed=number) for number in range(80)]
    found = similarity(query, [pack(chunk) for chunk in chunks])
    np.testing.assert_allclose(found, maxsim(query, chunks), atol=1e-5)


def test_nothing_to_compare() -> None:
    """No chunks give no rows, no query tokens give no columns."""
    assert similarity(unit(4, 384), []).shape == (0, 4)
    assert similarity(unit(4, 384)[:0], [pack(unit(2, 384))]).shape == (1, 0)


def test_signs_keep_the_order_of_the_tokens() -> None:
    """Among random tokens the one nearest to a query token by its floats is nearest by its signs too."""
    tokens = unit(200, 384)
    query = tokens[::10] + unit(20, 384, seed=9) * np.float32(0.7)
    query /= np.linalg.norm(query, axis=1, keepdims=True)
    found = similarity(query, [pack(token[None]) for token in tokens])
    assert found.argmax(axis=0).tolist() == (query @ tokens.T).argmax(axis=1).tolist()
    assert -1 <= found.min() <= found.max() <= 1
