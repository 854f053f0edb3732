// The folder that a training saves checkpoints to and goes on from, looked at before the first step.
//
// Threading: pure functions on the file system. Errors: dsat::Error in one line.
#ifndef DSAT_TRAINER_FILES_CHECKPOINT_DIR_H_
#define DSAT_TRAINER_FILES_CHECKPOINT_DIR_H_

#include <string>

namespace dsat::trainer {

// Makes the folder if needed. `option`: what named it, for the error.
void require_writable(const std::string& option, const std::string& folder);

// The subfolder PREFIXn of the highest number n that has a file of this name, written last; "": there is none.
std::string last_numbered(const std::string& folder, const std::string& prefix, const std::string& file);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_FILES_CHECKPOINT_DIR_H_
