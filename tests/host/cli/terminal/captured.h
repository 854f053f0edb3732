// A console that writes into files of the test's own, and what it has written.
#ifndef DSAT_TESTS_HOST_CLI_TERMINAL_CAPTURED_H_
#define DSAT_TESTS_HOST_CLI_TERMINAL_CAPTURED_H_

#include <unistd.h>

#include <cstdio>
#include <string>

#include "terminal/console.h"

namespace dsat::cli {

class Captured {
 public:
  Captured() : console(fileno(out_), fileno(err_)) {}
  ~Captured() {
    std::fclose(out_);
    std::fclose(err_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  std::string out() const { return text_of(out_); }
  std::string err() const { return text_of(err_); }

 private:
  static std::string text_of(std::FILE* file) {
    std::string text(static_cast<size_t>(lseek(fileno(file), 0, SEEK_END)), '\0');
    text.resize(static_cast<size_t>(pread(fileno(file), text.data(), text.size(), 0)));
    return text;
  }
  std::FILE* out_ = std::tmpfile();
  std::FILE* err_ = std::tmpfile();

 public:
  Console console;
};

}  // namespace dsat::cli

#endif  // DSAT_TESTS_HOST_CLI_TERMINAL_CAPTURED_H_
