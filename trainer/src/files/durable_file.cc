// Gives a finished folder its final name with renameat2(), which can exchange two names in one step.
// Where the file system cannot, three renames do it, and there is a moment without the new name.
#include "files/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "dsat/base/files.h"
#include "dsat/error.h"

namespace dsat::trainer {
namespace {

bool exchange_in_steps(const char* source, const char* target) {
  const std::string aside = std::string(source) + ".old";
  return ::rename(target, aside.c_str()) == 0 && ::rename(source, target) == 0 && ::rename(aside.c_str(), source) == 0;
}

}  // namespace

void put_folder_in_place(const std::string& parent, const std::string& from, const std::string& to) {
  const std::string source = parent + "/" + from, target = parent + "/" + to;
  const bool exchange = ::access(target.c_str(), F_OK) == 0;
  const unsigned flags = exchange ? RENAME_EXCHANGE : 0;
  bool done = ::renameat2(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), flags) == 0;
  // EINVAL: some network file systems know no exchange.
  if (!done && exchange && errno == EINVAL) done = exchange_in_steps(source.c_str(), target.c_str());
  if (!done) throw Error(DSAT_INTERNAL, fmt::format("cannot write {}: {}", target, std::strerror(errno)));
  sync_folder(parent);
}

}  // namespace dsat::trainer
