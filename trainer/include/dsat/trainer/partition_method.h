// How the layers of a pipeline are shared out to its stages.
//
// A value of its own header, so that the settings need no LibTorch.
#ifndef DSAT_TRAINER_PARTITION_METHOD_H_
#define DSAT_TRAINER_PARTITION_METHOD_H_

namespace dsat::trainer {

enum class PartitionMethod {
  parameters,  // DeepSpeed's default: the largest stage has as few parameters as any cut allows
  uniform      // stages of as many layers, by one at most
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PARTITION_METHOD_H_
