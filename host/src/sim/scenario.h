// A scenario: the model and the cluster of a simulation. It is read from JSON, and every key is checked.
//
// Format, units and defaults: docs/simulator.md. Threading: plain values. Errors: dsat::Error that names file and key.
#ifndef DSAT_HOST_SIM_SCENARIO_H_
#define DSAT_HOST_SIM_SCENARIO_H_

#include <cstdint>
#include <string>

#include "dsat/cost/model_states.h"
#include "sim/training.h"

namespace dsat::host::sim {

struct Model {
  cost::TransformerShape shape;
  double vocab = 0;
  double num_params = 0;

  double layer_params() const { return 12 * shape.hidden * shape.hidden; }
};

struct Cluster {
  int64_t nodes = 1, gpus_per_node = 1, gpus_per_trial = 1;
  double device_memory = 0;     // bytes
  double flops = 0;             // peak FLOP/s of a device at 16 bits
  double memory_bandwidth = 0;  // bytes/s of a device's own memory
  // In one direction: of one device inside a node; of all network cards of a node together.
  double intra_node_bandwidth = 0, inter_node_bandwidth = 0;
  double intra_node_latency_us = 0, inter_node_latency_us = 0;  // of one hop
  double pcie_bandwidth = 0;                                    // bytes/s between a device and its host
  double cpu_memory_bandwidth = 0;  // bytes/s of a node's host memory, which its devices share
};

struct SimulatedEngine {
  double efficiency = 0;              // share of the peak, for an infinite batch
  double half_tokens = 0;             // tokens of a micro batch at which half of this share is reached
  double kernel_latency_us = 0;       // to launch a layer's kernels, per pass
  double collective_overhead_us = 0;  // to launch a collective
  double overlap_slowdown = 0;        // of computation while collectives run
  double fixed_memory = 0;            // bytes for context and libraries
  double fragmentation = 0;           // reserved but not allocated, relative to what is allocated
};

struct Noise {
  double relative = 0;               // standard deviation of a phase's time between trials
  double imbalance = 0;              // standard deviation of the devices' speed; a step waits for the slowest
  double straggler_probability = 0;  // that a trial is disturbed
  double straggler_slowdown = 0;     // of a disturbed trial
};

struct Scenario {
  std::string name;
  Model model;
  Cluster cluster;
  SimulatedEngine engine;
  Noise noise;
  Training training;
  double startup_seconds = 0, steps = 0;  // of a trial
  Json ds_config;
};

// `source` is the file's name in messages.
Scenario scenario_from_json(const Json& json, const std::string& source);

}  // namespace dsat::host::sim

#endif  // DSAT_HOST_SIM_SCENARIO_H_
