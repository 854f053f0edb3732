// How a chain of layers is cut into the stages of a pipeline.
//
// Units: parameters are elements. Threading: pure functions. Errors: dsat::Error, one line, when there are more stages
// than layers.
#ifndef DSAT_TRAINER_LAYOUT_PIPELINE_PARTITION_H_
#define DSAT_TRAINER_LAYOUT_PIPELINE_PARTITION_H_

#include <cstdint>
#include <vector>

#include "dsat/trainer/partition_method.h"
#include "layout/recompute_segments.h"

namespace dsat::trainer {

// `parameters`: of each layer, elements. One segment per stage, each with one layer at least.
Segments pipeline_stages(const std::vector<int64_t>& parameters, int num_stages, PartitionMethod method);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_LAYOUT_PIPELINE_PARTITION_H_
