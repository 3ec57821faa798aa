"""A Llama-family decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

Owns: the forward pass and the parameter names, which are those of `transformers`' LlamaForCausalLM.
Never: draws weights (a new model holds zeros; see init.py), reads a default that is not in the
config, or knows about devices (see device.py).
Next: weights.py for the canonical names and views of the parameters.

Shape legend: B sequences, T positions, V vocabulary, C hidden, H query heads, G key-value heads,
D = C / H per head.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from troth_coordinator.rules.config import ModelSection


class Linear(nn.Linear):
    """A matrix without bias, born as zeros: no random draw outside init.py."""

    def __init__(self, num_in: int, num_out: int) -> None:
        super().__init__(num_in, num_out, bias=False)

    def reset_parameters(self) -> None:
        """Zeros instead of torch's own draw."""
        nn.init.zeros_(self.weight)


class Embedding(nn.Embedding):
    """One row per token, born as zeros."""

    def reset_parameters(self) -> None:
        """Zeros instead of torch's own draw."""
        nn.init.zeros_(self.weight)


class RmsNorm(nn.Module):
    """Scale each vector to unit root mean square, computed in fp32, times a learned weight."""

    def __init__(self, size: int, eps_nano: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))
        self.eps = eps_nano / 1e9

    def forward(self, x: Tensor) -> Tensor:
        """[..., C] -> [..., C], same dtype."""
        wide = x.float()
        unit = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * unit.to(x.dtype)


class Attention(nn.Module):
    """Causal self-attention in which H / G query heads share one key-value head."""

    def __init__(self, config: ModelSection) -> None:
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.num_groups = config.num_key_value_heads
        self.head_dim = config.hidden_size // config.num_attention_heads
        self.q_proj = Linear(config.hidden_size, self.num_heads * self.head_dim)
        self.k_proj = Linear(config.hidden_size, self.num_groups * self.head_dim)
        self.v_proj = Linear(config.hidden_size, self.num_groups * self.head_dim)
        self.o_proj = Linear(self.num_heads * self.head_dim, config.hidden_size)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Mix positions. x [B, T, C], cos and sin [T, D] -> [B, T, C]."""
        q = rotate(self._heads(self.q_proj(x), self.num_heads), cos, sin)
        k = rotate(self._heads(self.k_proj(x), self.num_groups), cos, sin)
        v = self._heads(self.v_proj(x), self.num_groups)
        share = self.num_heads // self.num_groups
        k, v = k.repeat_interleave(share, dim=1), v.repeat_interleave(share, dim=1)
        # The scale 1 / sqrt(D) is torch's default and the architecture's.
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def _heads(self, x: Tensor, heads: int) -> Tensor:
        """[B, T, heads * D] -> [B, heads, T, D]."""
        return x.view(x.shape[0], x.shape[1], heads, self.head_dim).transpose(1, 2)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each plane (j, j + D/2) of each head by its angle. x [B, heads, T, D], same out."""
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


def rotary_angles(config: ModelSection) -> Tensor:
    """Angle of each position and each dimension of a head, fp32 [max_position_embeddings, D]."""
    dim = config.hidden_size // config.num_attention_heads
    exponent = torch.arange(0, dim, 2, dtype=torch.float32) / dim
    frequency = 1.0 / float(config.rope_theta) ** exponent
    position = torch.arange(config.max_position_embeddings, dtype=torch.float32)
    angle = torch.outer(position, frequency)
    return torch.cat((angle, angle), dim=-1)


class Mlp(nn.Module):
    """SwiGLU: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: ModelSection) -> None:
        super().__init__()
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, C] -> [B, T, C]."""
        gated = functional.silu(self.gate_proj(x)) * self.up_proj(x)
        return self.down_proj(gated)  # type: ignore[no-any-return]


class DecoderLayer(nn.Module):
    """Attention and MLP, each on a normalised copy, each added back."""

    def __init__(self, config: ModelSection) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = Mlp(config)
        self.input_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps_nano)
        self.post_attention_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps_nano)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """[B, T, C] -> [B, T, C]."""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """Embedding, layers, final norm. The cosine and sine tables are rebuilt, never stored."""

    cos: Tensor
    sin: Tensor

    def __init__(self, config: ModelSection) -> None:
        super().__init__()
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RmsNorm(config.hidden_size, config.rms_norm_eps_nano)
        angles = rotary_angles(config)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens int64 [B, T] -> hidden [B, T, C]."""
        x = self.embed_tokens(tokens)
        cos, sin = self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)  # type: ignore[no-any-return]


class Llama(nn.Module):
    """The whole model. A new one holds zeros; load weights before use (weights.load_weights)."""

    def __init__(self, config: ModelSection) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.lm_head = Linear(config.hidden_size, config.vocab_size)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens int64 [B, T], T at most max_position_embeddings -> logits [B, T, V]."""
        return self.lm_head(self.model(tokens))  # type: ignore[no-any-return]
