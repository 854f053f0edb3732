// The method that divides the layers of a pipeline among its stages.
//
// The header stands alone, so that the settings need no LibTorch.
#ifndef DSAT_TRAINER_PARTITION_METHOD_H_
#define DSAT_TRAINER_PARTITION_METHOD_H_

namespace dsat::trainer {

enum class PartitionMethod {
  parameters,  // DeepSpeed's default: the largest stage has as few parameters as any cut allows
  uniform      // the stages have equal numbers of layers, or differ by one
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PARTITION_METHOD_H_
