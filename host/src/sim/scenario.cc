// Reads a scenario section by section. Then checks relations between keys: shape and size, devices and nodes.
#include "sim/scenario.h"

#include <fmt/format.h>

#include <cmath>

#include "dsat/cost/estimate.h"
#include "sim/scenario_section.h"

namespace dsat::host::sim {
namespace {

// Returns the parameters of a GPT-like transformer: per layer 12 h^2 weights and 13 h biases and norms; V h + s h
// embeddings; the output shares the input's weights. Source: Narayanan et al. (arXiv:2104.04473), equation 2.
double transformer_params(const cost::TransformerShape& shape, double vocab) {
  const double h = shape.hidden;
  return shape.layers * (12 * h * h + 13 * h) + (vocab + shape.sequence) * h;
}

Model read_model(const Json& json, const std::string& source) {
  Section section(json, "model", source);
  Model model;
  const std::string checkpointing = section.text("checkpointing", "none");
  model.shape.flash_attention = section.flag("flash_attention", false);
  const bool by_size = section.has("num_params");
  const double num_params = by_size ? section.above_zero("num_params") : 0;
  const double vocab = section.not_negative("vocab", by_size ? std::optional<double>(0) : std::nullopt);
  const bool by_vocab = section.has("vocab");
  model.shape.layers = static_cast<double>(section.count("layers"));
  model.shape.hidden = static_cast<double>(section.count("hidden"));
  model.shape.heads = static_cast<double>(section.count("heads"));
  model.shape.sequence = static_cast<double>(section.count("seq"));
  section.finish();
  try {
    model.shape.checkpointing = cost::parse_checkpointing(checkpointing);
  } catch (const Error&) {
    section.wrong("checkpointing", fmt::format("is '{}': give none, selective or full", checkpointing));
  }
  if (std::fmod(model.shape.hidden, model.shape.heads) != 0) {
    section.wrong("hidden", "is no multiple of model.heads: every head has hidden / heads values");
  }
  const double without_vocab = transformer_params(model.shape, 0);
  model.vocab = by_vocab ? vocab : std::max(0.0, (num_params - without_vocab) / model.shape.hidden);
  model.num_params = by_size ? num_params : transformer_params(model.shape, vocab);
  const double expected = transformer_params(model.shape, model.vocab);
  if (std::abs(model.num_params / expected - 1) > 0.1) {
    section.wrong("num_params", fmt::format("is {}, but the shape has {}: give only one of them, or correct one",
                                            Json(model.num_params).dump(), Json(std::round(expected)).dump()));
  }
  return model;
}

// Each device is a slot in the host.
void check_devices(const Section& section, int64_t devices) {
  if (devices <= 1000000) return;
  section.wrong("nodes", fmt::format("x gpus_per_node is {}: a cluster has at most 1,000,000 devices", devices));
}

void check_trial_size(const Section& section, const Cluster& c) {
  const int64_t all = c.nodes * c.gpus_per_node;
  if (c.gpus_per_trial > all) {
    section.wrong("gpus_per_trial", fmt::format("is {}, but nodes x gpus_per_node is {}", c.gpus_per_trial, all));
  }
  if (c.gpus_per_trial > c.gpus_per_node && c.gpus_per_trial % c.gpus_per_node != 0) {
    section.wrong("gpus_per_trial",
                  fmt::format("is {}: above one node it must be a multiple of gpus_per_node", c.gpus_per_trial));
  }
}

Cluster read_cluster(const Json& json, const std::string& source) {
  Section section(json, "cluster", source);
  Cluster c;
  c.nodes = section.count("nodes", 1);
  c.gpus_per_node = section.count("gpus_per_node");
  check_devices(section, c.nodes * c.gpus_per_node);
  c.gpus_per_trial = section.count("gpus_per_trial", c.nodes * c.gpus_per_node);
  c.device_memory = section.size("device_memory");
  c.flops = section.above_zero("flops");
  c.memory_bandwidth = section.size("memory_bandwidth", 1.5e12);
  // A link that nothing uses needs no speed.
  const auto absent = [](bool unused) { return unused ? std::optional<double>(1) : std::nullopt; };
  c.intra_node_bandwidth = section.size("intra_node_bandwidth", absent(c.gpus_per_node == 1));
  c.inter_node_bandwidth = section.size("inter_node_bandwidth", absent(c.nodes == 1));
  c.intra_node_latency_us = section.not_negative("intra_node_latency_us", 3);
  c.inter_node_latency_us = section.not_negative("inter_node_latency_us", 8);
  c.pcie_bandwidth = section.size("pcie_bandwidth", 20e9);
  c.cpu_memory_bandwidth = section.size("cpu_memory_bandwidth", 150e9);
  section.finish();
  check_trial_size(section, c);
  return c;
}

SimulatedEngine read_engine(const Json& json, const std::string& source) {
  Section section(json, "engine", source);
  SimulatedEngine e;
  e.efficiency = section.above_zero("efficiency", 0.55);
  e.half_tokens = section.not_negative("half_tokens", 1024);
  e.kernel_latency_us = section.not_negative("kernel_latency_us", 60);
  e.collective_overhead_us = section.not_negative("collective_overhead_us", 25);
  e.overlap_slowdown = section.share("overlap_slowdown", 0.05);
  e.fixed_memory = section.size("fixed_memory", 1.3e9);
  e.fragmentation = section.share("fragmentation", 0.04);
  section.finish();
  if (e.efficiency > 1) {
    section.wrong("efficiency", fmt::format("is {}: it must be at most 1", Json(e.efficiency).dump()));
  }
  return e;
}

Noise read_noise(const Json& json, const std::string& source) {
  Section section(json, "noise", source);
  Noise n;
  n.relative = section.share("relative", 0.01);
  n.imbalance = section.share("imbalance", 0.005);
  n.straggler_probability = section.share("straggler_probability", 0);
  n.straggler_slowdown = section.not_negative("straggler_slowdown", 0.3);
  section.finish();
  return n;
}

Json default_ds_config() {
  return {{"train_micro_batch_size_per_gpu", 1},
          {"gradient_accumulation_steps", 1},
          {"bf16", {{"enabled", true}}},
          {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e-4}}}}},
          {"zero_optimization", {{"stage", 1}}}};
}

}  // namespace

Scenario scenario_from_json(const Json& json, const std::string& source) {
  Section top(json, "", source);
  Scenario scenario;
  scenario.name = top.text("name", "simulation");
  scenario.ds_config = top.object("ds_config");
  if (scenario.ds_config.empty()) scenario.ds_config = default_ds_config();
  for (const char* section : {"model", "cluster", "engine", "noise", "training", "trial"}) top.object(section);
  top.finish();
  for (const char* section : {"model", "cluster"}) {
    if (!top.has(section)) top.wrong(section, "is missing");
  }
  scenario.model = read_model(json, source);
  scenario.cluster = read_cluster(json, source);
  scenario.engine = read_engine(json, source);
  scenario.noise = read_noise(json, source);
  scenario.training = read_training(json, source);
  Section trial(json, "trial", source);
  scenario.startup_seconds = trial.not_negative("startup_seconds", 40);
  scenario.steps = static_cast<double>(trial.count("steps", 8));
  trial.finish();
  return scenario;
}

}  // namespace dsat::host::sim
