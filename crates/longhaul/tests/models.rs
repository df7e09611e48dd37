//! The table of models against what providers publish: whatever a cloud or a router puts around a name, it means the row
//! with the published price, sizes and binding.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use longhaul::{Models, Tokens};

/// A published model.
struct Published {
    /// The row that it resolves to.
    row: &'static str,
    /// Its names.
    names: &'static str,
    /// Dollars per million tokens: input, output, cache read, cache write for the provider's default lifetime.
    dollars: [f64; 4],
    /// Tokens: the window, the longest answer, and the shortest prefix that is cached.
    tokens: [u64; 3],
    binds: bool,
}

const fn published(
    row: &'static str,
    names: &'static str,
    dollars: [f64; 4],
    tokens: [u64; 3],
    binds: bool,
) -> Published {
    Published { row, names, dollars, tokens, binds }
}

const M: u64 = 1_000_000;
const GPT: [u64; 3] = [1_050_000, 128_000, 1_024];
const GEMINI: [u64; 3] = [1_048_576, 65_536, 4_096];

/// As of November 2026.
const PUBLISHED: &[Published] = &[
    published(
        "claude-fable-5-2",
        "claude-fable-5-2 claude-mythos-5-2 us.anthropic.claude-fable-5-2-20261104-v1:0 claude-mythos-5-2@20261104",
        [8.0, 40.0, 0.2, 10.0],
        [M, 128_000, 512],
        true,
    ),
    published(
        "claude-fable-5-1",
        "claude-fable-5-1 claude-mythos-5-1 anthropic/claude-fable-5.1 eu.anthropic.claude-mythos-5-1-20260801-v1:0",
        [10.0, 50.0, 0.25, 12.5],
        [M, 128_000, 512],
        true,
    ),
    published(
        "claude-fable-5",
        "claude-fable-5 claude-mythos-5 claude-fable-5-20260609 openrouter/anthropic/claude-fable-5",
        [10.0, 50.0, 1.0, 12.5],
        [M, 128_000, 512],
        false,
    ),
    published(
        "claude-opus-5-5",
        "claude-opus-5-5 claude-opus-5-5[1m] anthropic/claude-opus-5.5:beta vertex_ai/claude-opus-5-5@20260928 \
         bedrock/global.anthropic.claude-opus-5-5-20260928-v1:0 databricks-claude-opus-5-5",
        [4.0, 20.0, 0.2, 5.0],
        [M, 128_000, 512],
        true,
    ),
    published(
        "claude-opus-5",
        "claude-opus-5 claude-opus-5@20260801 apac.anthropic.claude-opus-5-20260801-v1:0",
        [5.0, 25.0, 0.5, 6.25],
        [M, 128_000, 512],
        false,
    ),
    published(
        "claude-opus-4-8",
        "claude-opus-4-8 anthropic/claude-opus-4.8",
        [5.0, 25.0, 0.5, 6.25],
        [M, 128_000, 1_024],
        false,
    ),
    published("claude-opus-4-7", "claude-opus-4-7", [5.0, 25.0, 0.5, 6.25], [M, 128_000, 2_048], false),
    published("claude-opus-4-6", "claude-opus-4-6", [5.0, 25.0, 0.5, 6.25], [M, 128_000, 4_096], false),
    published(
        "claude-sonnet-5-5",
        "claude-sonnet-5-5 us.anthropic.claude-sonnet-5-5-20260928-v1:0 openrouter/anthropic/claude-sonnet-5.5:thinking",
        [2.0, 10.0, 0.1, 2.5],
        [M, 128_000, 512],
        true,
    ),
    published(
        "claude-sonnet-5",
        "claude-sonnet-5 claude-sonnet-5@20260610",
        [2.0, 10.0, 0.2, 2.5],
        [M, 128_000, 1_024],
        false,
    ),
    published("claude-sonnet-4-6", "claude-sonnet-4-6", [3.0, 15.0, 0.3, 3.75], [M, 128_000, 1_024], false),
    published(
        "claude-sonnet-4",
        "claude-sonnet-4-5 us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        [3.0, 15.0, 0.3, 3.75],
        [200_000, 64_000, 1_024],
        false,
    ),
    published(
        "claude-haiku-5-5",
        "claude-haiku-5-5 jp.anthropic.claude-haiku-5-5-20260928-v1:0 claude-haiku-5-5@20260928",
        [0.1, 0.5, 0.01, 0.125],
        [M, 128_000, 512],
        true,
    ),
    published(
        "claude-haiku-4-5",
        "claude-haiku-4-5 claude-haiku-4-5-20251001",
        [1.0, 5.0, 0.1, 1.25],
        [200_000, 64_000, 4_096],
        false,
    ),
    published("gpt-6-astra", "gpt-6-astra openai/gpt-6-astra", [10.0, 50.0, 1.0, 12.5], GPT, false),
    published("gpt-6.1-sol", "gpt-6.1-sol azure/gpt-6.1-sol-2026-10-20", [2.0, 10.0, 0.1, 2.5], GPT, false),
    published("gpt-6.1-terra", "gpt-6.1-terra", [1.0, 5.0, 0.05, 1.25], GPT, false),
    published("gpt-6-sol", "gpt-6-sol", [2.0, 10.0, 0.2, 2.5], GPT, false),
    published("gpt-6-luna", "gpt-6-luna", [0.1, 0.5, 0.01, 0.125], GPT, false),
    published("gpt-5.6-sol", "gpt-5.6-sol", [4.0, 20.0, 0.4, 5.0], GPT, false),
    published("gpt-5.6-terra", "gpt-5.6-terra", [2.0, 12.0, 0.2, 2.5], GPT, false),
    published("gpt-5.6-luna", "gpt-5.6-luna", [0.2, 1.2, 0.02, 0.25], GPT, false),
    published("gpt-5.5", "gpt-5.5", [5.0, 30.0, 0.5, 5.0], GPT, false),
    published(
        "gemini-4-argon",
        "gemini-4-argon models/gemini-4-argon publishers/google/models/gemini-4-argon",
        [2.0, 10.0, 0.1, 2.0],
        GEMINI,
        false,
    ),
    published(
        "gemini-3.8-flash",
        "gemini-3.8-flash gemini-3.7-flash google/gemini-3.6-flash",
        [0.75, 3.75, 0.075, 0.75],
        GEMINI,
        false,
    ),
    published("gemini-3-pro", "gemini-3.1-pro-preview", [2.0, 12.0, 0.2, 2.0], GEMINI, false),
    published(
        "deepseek-flash",
        "deepseek-flash deepseek/deepseek-v4.1-flash",
        [0.15, 0.6, 0.003, 0.15],
        [M, 384_000, 64],
        false,
    ),
    published("deepseek-v4-pro", "deepseek-v4-pro", [0.66, 1.98, 0.022, 0.66], [M, 384_000, 64], false),
    published("qwen3.8-max", "qwen3.8-max", [2.0, 6.0, 0.25, 2.0], [991_808, 131_072, 256], false),
    published("qwen3.8-flash", "qwen3.8-flash", [0.15, 0.47, 0.016, 0.15], [991_808, 131_072, 256], false),
    published("qwen3.7-max", "qwen3.7-max", [2.5, 7.5, 0.5, 2.5], [991_808, 65_536, 256], false),
    published(
        "kimi-k3.1-pro",
        "kimi-k3.1-pro moonshotai/kimi-k3.1-pro",
        [2.0, 10.0, 0.2, 2.0],
        [1_048_576, 1_048_576, 256],
        false,
    ),
    published("kimi-k3", "kimi-k3", [3.0, 15.0, 0.3, 3.0], [1_048_576, 1_048_576, 256], false),
    published("kimi-k2", "kimi-k2.7-code", [0.95, 4.0, 0.19, 0.95], [262_144, 262_144, 256], false),
    published("glm-5.3", "glm-5.3 z-ai/glm-5.3", [1.4, 4.4, 0.26, 1.4], [1_048_576, 131_072, 1_024], false),
    published("glm-5.3-flash", "glm-5.3-flash", [0.15, 0.5, 0.03, 0.15], [1_048_576, 128_000, 1_024], false),
    published("glm-5.1", "glm-5.1", [1.4, 4.4, 0.26, 1.4], [200_000, 128_000, 1_024], false),
    published("glm-5", "glm-5", [1.0, 3.2, 0.2, 1.0], [200_000, 128_000, 1_024], false),
];

#[test]
fn every_name_of_a_model_means_what_its_provider_publishes() {
    for published in PUBLISHED {
        for name in published.names.split_whitespace() {
            let model = Models::builtin().find(name);
            let price = model.price.unwrap();
            let dollars = [price.input, price.output, price.cache_read, price.cache_write];
            let [window, max_output, min_tokens] = published.tokens;
            assert_eq!(&*model.name, published.row, "{name}");
            assert_eq!(dollars, published.dollars.map(|dollars| (dollars * 1e6).round() as u64), "{name}");
            assert_eq!((model.window, model.max_output), (Tokens(window), Tokens(max_output)), "{name}");
            assert_eq!((model.cache.min_tokens, model.binds), (min_tokens, published.binds), "{name}");
        }
    }
}

#[test]
fn writes_for_an_hour_cost_twice_the_input() {
    for row in Models::builtin().iter().filter(|row| row.name.starts_with("claude")) {
        let price = row.price.unwrap();
        assert_eq!(price.cache_write_1h, Some(price.input * 2), "{}", row.name);
        assert_eq!(price.cache_write * 4, price.input * 5, "{}", row.name);
    }
}
