// The weights of a checkpoint as one file for other programs, whatever ranks, stages and precision have saved it.
//
// Values are those of the fp32 master copy; buffers are rank 0's. It needs memory for the largest tensor only, and no
// ranks. Threading: one thread. Errors: dsat::Error, one line that names the file; then OUT is as it was.
#ifndef DSAT_TRAINER_WEIGHTS_CHECKPOINT_EXPORT_H_
#define DSAT_TRAINER_WEIGHTS_CHECKPOINT_EXPORT_H_

#include <cstdint>
#include <string>

namespace dsat::trainer {

struct ExportedCheckpoint {
  std::string folder;  // the checkpoint that CHECKPOINT stands for
  size_t tensors = 0;
  bool lacks_buffers = false;  // it is of a version that does not describe them
};

// `checkpoint`: one, or the folder that has its name in `latest` or `latest.json`. `out`: *.pt or *.safetensors.
ExportedCheckpoint export_checkpoint(const std::string& checkpoint, const std::string& out);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WEIGHTS_CHECKPOINT_EXPORT_H_
