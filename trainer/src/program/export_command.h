// dsat-trial export CHECKPOINT OUT.pt|OUT.safetensors
//
// Threading: one thread. Errors: dsat::Error, one line that names the argument or the file.
#ifndef DSAT_TRAINER_PROGRAM_EXPORT_COMMAND_H_
#define DSAT_TRAINER_PROGRAM_EXPORT_COMMAND_H_

#include <string>
#include <vector>

namespace dsat::trainer {

// `args`: those after "export".
void export_command(const std::vector<std::string>& args);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PROGRAM_EXPORT_COMMAND_H_
