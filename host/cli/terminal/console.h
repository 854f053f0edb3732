// The streams of dsat-host. Results and progress go to standard output, errors to standard error. Under --json one
// object goes to standard output and everything else to standard error.
//
// Threading: one thread at a time. Errors: a stream that fails once is not written again. The study goes on, and
// `finish` reports the failure at the end.
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
  void write(std::string_view text);    // unchanged; the caller makes text of others printable
  int error() const { return error_; }  // errno of the first failure; 0: none
  // Takes over the error of another process that writes to the same output.
  void take_error(int error) { error_ = error_ != 0 ? error_ : error; }
  // Waits until nobody reads the output any more, for at most `time`. Returns whether that is so. On a terminal another
  // thread may write meanwhile.
  bool lost_within(std::chrono::milliseconds time) const;
  bool terminal() const;
  int columns() const;  // of the terminal; 80 if unknown
  int rows() const;     // of the terminal; 24 if unknown

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
  // Sends data for programs to `fd` from now on.
  void redirect_data(int fd) { out_ = Output(fd); }

  Output& text() { return json_ ? err_ : out_; }
  const Output& text() const { return json_ ? err_ : out_; }
  // Text for people: control characters, which trials, plugins and files may hold, are removed (dsat/base/utf8.h).
  void print(std::string_view text);
  void line(std::string_view text);
  // The errno of standard output. A child that writes to the same stream passes its own on. 0: all was written.
  int output_error() const { return out_.error(); }
  void take_output_error(int error) { out_.take_error(error); }
  // Data for programs, on standard output; made printable only on a terminal.
  void data(std::string_view text);
  // A remark beside the data, on standard error, so that standard output can be redirected.
  void aside(std::string_view text);
  void print_json(const Json& object);
  // Errors go to logs and to those who are asked for help, so what looks like a secret is masked.
  void error(std::string_view message);         // "dsat-host: <message>"
  void error_detail(std::string_view message);  // further lines below an error

  // The final exit status. A full disk turns success into failure; a reader that went away early (head) does not.
  int finish(int status);

 private:
  Output out_, err_;
  bool json_ = false;
};

// Opens /dev/null for every standard stream that is closed. Otherwise a file opened later would get its number and our
// messages.
void open_missing_standard_streams();

// Any text, such as a script's message, as one printable line: each line break becomes a blank.
std::string one_line(std::string_view text);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_CONSOLE_H_
