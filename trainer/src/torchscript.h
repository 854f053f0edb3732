// Trains a TorchScript module, exported from Python, on random data.
//
// Threading: one rank, one thread. Errors: dsat::Error for a file that is no such module or inputs that do not fit.
#ifndef DSAT_TRAINER_TORCHSCRIPT_H_
#define DSAT_TRAINER_TORCHSCRIPT_H_

#include <memory>

#include "training.h"

namespace dsat::trainer {

// For options.torchscript.
std::unique_ptr<Training> make_torchscript_training(const Options& options, World& world);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_TORCHSCRIPT_H_
