// The folder that a training saves checkpoints to and goes on from, looked at before the first step; names in it.
//
// Threading: pure functions on the file system. Errors: dsat::Error in one line.
#ifndef DSAT_TRAINER_FILES_CHECKPOINT_DIR_H_
#define DSAT_TRAINER_FILES_CHECKPOINT_DIR_H_

#include <string>

namespace dsat::trainer {

inline constexpr const char* kLatestCheckpoint = "latest";                // names the newest
inline constexpr const char* kCheckpointDescription = "checkpoint.json";  // in each checkpoint

// The file of a rank, counted within its pipeline stage.
std::string checkpoint_shard_name(int stage, int stages, int rank);
// A buffer, or a parameter that is not trained, in a rank's file.
std::string checkpoint_buffer_name(const std::string& tensor);

// Makes the folder if needed. `option`: what named it, for the error.
void require_writable(const std::string& option, const std::string& folder);

// The subfolder PREFIXn of the highest number n that has a file of this name, written last; "": there is none.
std::string last_numbered(const std::string& folder, const std::string& prefix, const std::string& file);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_FILES_CHECKPOINT_DIR_H_
