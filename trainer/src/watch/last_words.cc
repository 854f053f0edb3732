// Keeps the beginning of the line ready in memory of its own: a handler may take none.
#include "watch/last_words.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace dsat::trainer {
namespace {

constexpr size_t kMost = 1000;
char line[kMost] = "dsat-trial: ";
size_t begins = 12;
int descriptor = STDERR_FILENO;

}  // namespace

void set_last_words(int fd, const std::string& before) {
  descriptor = fd;
  begins = std::min(before.size(), kMost / 2);
  std::memcpy(line, before.data(), begins);
}

void end_with(const char* text, size_t size) {
  const size_t length = std::min(size, kMost - begins - 1);
  std::memcpy(line + begins, text, length);
  line[begins + length] = '\n';
  if (::write(descriptor, line, begins + length + 1) < 0) ::_exit(1);
  ::_exit(1);
}

}  // namespace dsat::trainer
