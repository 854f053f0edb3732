// Files that this process runs as code: nobody but their owner's group may be able to change them.
//
// Threading: pure but for looking at files. Errors: none; what cannot be looked at fails when it is opened.
#ifndef DSAT_HOST_BASE_TRUSTED_H_
#define DSAT_HOST_BASE_TRUSTED_H_

#include <filesystem>
#include <string>

namespace dsat::host {

// "" or why everybody on this machine could put code of theirs in the file's place, and what to do about it. A folder
// such as /tmp, where nobody can take another's file away, will do for a file of one's own.
std::string why_untrusted(const std::filesystem::path& file);

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_TRUSTED_H_
