// What dsat-host writes, and where: results and progress on standard output, errors on standard error; under --json
// only the one object goes to standard output and everything else to standard error.
//
// Threading: one thread at a time. Errors: a stream that cannot be written is remembered and no longer written to; the
// study goes on, and `finish` reports it at the end.
#ifndef DSAT_CLI_TERMINAL_CONSOLE_H_
#define DSAT_CLI_TERMINAL_CONSOLE_H_

#include <chrono>
#include <string>
#include <string_view>

#include "dsat/error.h"

namespace dsat::cli {

// A file descriptor that text is written to; not owned.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}
  void write(std::string_view text);    // as it is: of others only what was made printable
  int error() const { return error_; }  // errno of the first failure; 0: none
  // What another process had to say of the same output.
  void take_error(int error) { error_ = error_ != 0 ? error_ : error; }
  // Waits so long, or until nobody can read any more what is written here. On a terminal another thread may write.
  bool lost_within(std::chrono::milliseconds time) const;
  bool terminal() const;
  int columns() const;  // of the terminal; 80 where unknown
  int rows() const;     // and 24

 private:
  int fd_;
  int error_ = 0;
};

class Console {
 public:
  Console() : Console(1, 2) {}
  Console(int out_fd, int err_fd) : out_(out_fd), err_(err_fd) {}

  // From now on text for people goes to standard error.
  void reserve_stdout_for_json() { json_ = true; }
  bool json() const { return json_; }
  // What is for programs goes there from now on.
  void redirect_data(int fd) { out_ = Output(fd); }

  Output& text() { return json_ ? err_ : out_; }
  const Output& text() const { return json_ ? err_ : out_; }
  // Text for people: what trials, plugins and files hold of control characters goes (dsat/base/utf8.h).
  void print(std::string_view text);
  void line(std::string_view text);
  // What became of standard output in a child that writes to the same one; 0: all was written.
  int output_error() const { return out_.error(); }
  void take_output_error(int error) { out_.take_error(error); }
  // For programs, on standard output: as it is, but for a terminal.
  void data(std::string_view text);
  // What is printed beside data: on standard error, so that standard output can be redirected.
  void aside(std::string_view text);
  void print_json(const Json& object);
  void error(std::string_view message);         // "dsat-host: <message>"
  void error_detail(std::string_view message);  // further lines below an error

  // The exit status in the end: a standard output that is full turns `status` into a failure; a reader that went away
  // early (head) does not.
  int finish(int status);

 private:
  Output out_, err_;
  bool json_ = false;
};

// Opens /dev/null for every standard stream that the caller has closed, so that no file of ours gets its number and
// receives our messages.
void open_missing_standard_streams();

// Text that may hold anything (a script's own message), as one line that a terminal takes as it is: each break becomes
// a blank.
std::string one_line(std::string_view text);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_CONSOLE_H_
