// Trains a TorchScript module, exported from Python, on random data.
//
// Threading: one rank, one thread. Errors: dsat::Error for a file that is no such module or inputs that do not fit.
#ifndef DSAT_TRAINER_PROGRAM_TORCHSCRIPT_TRAINING_H_
#define DSAT_TRAINER_PROGRAM_TORCHSCRIPT_TRAINING_H_

#include <memory>

#include "program/builtin_training.h"
#include "settings/settings.h"

namespace dsat::trainer {

// For options.torchscript. Borrows what it is given.
std::unique_ptr<Training> make_torchscript_training(const Options& options, const Settings& settings, World& world);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PROGRAM_TORCHSCRIPT_TRAINING_H_
