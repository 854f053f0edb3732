// The columns of a trace that a study writes and the simulator reads. docs/simulator.md describes them.
#ifndef DSAT_HOST_SIM_TRACE_COLUMNS_H_
#define DSAT_HOST_SIM_TRACE_COLUMNS_H_

namespace dsat::host::sim {

inline constexpr const char* kStageKey = "zero_optimization.stage";
// Measurements of a trial and of its model.
inline constexpr const char* kMeasured[] = {"forward",
                                            "backward",
                                            "step",
                                            "latency",
                                            "throughput",
                                            "FLOPS_per_gpu",
                                            "num_params",
                                            "trainable_num_params",
                                            "activation_mem_per_gpu"};

}  // namespace dsat::host::sim

#endif  // DSAT_HOST_SIM_TRACE_COLUMNS_H_
