// The folder that dsat-host was started in. Threading: pure function. Errors: dsat::Error if the folder is gone.
#ifndef DSAT_CLI_OPTIONS_CURRENT_FOLDER_H_
#define DSAT_CLI_OPTIONS_CURRENT_FOLDER_H_

#include <filesystem>

namespace dsat::cli {

std::filesystem::path current_folder();

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_CURRENT_FOLDER_H_
