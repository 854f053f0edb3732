// A folder that a power cut or a kill leaves whole or absent.
//
// Single files are the floor's matter (dsat/base/files.h). Threading: no state of its own; one writer a folder.
// Errors: dsat::Error with code DSAT_INTERNAL, one line that names the folder.
#ifndef DSAT_TRAINER_FILES_DURABLE_FILE_H_
#define DSAT_TRAINER_FILES_DURABLE_FILE_H_

#include <string>

namespace dsat::trainer {

// Gives the folder `from` the name `to`, both in the folder `parent`, in one step, and syncs `parent`. If there is a
// folder of that name, the two change places: `from` is then the old one.
void put_folder_in_place(const std::string& parent, const std::string& from, const std::string& to);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_FILES_DURABLE_FILE_H_
