// A file that is written piece by piece beside its place, and then renamed into it.
//
// Threading: one thread. Errors: dsat::Error, one line that names the file.
#ifndef DSAT_TRAINER_WEIGHTS_OUTPUT_FILE_H_
#define DSAT_TRAINER_WEIGHTS_OUTPUT_FILE_H_

#include <cstddef>
#include <string>

namespace dsat::trainer {

class OutputFile {
 public:
  explicit OutputFile(std::string path);
  // Removes what was not committed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, size_t bytes);
  void commit();
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail() const;

  std::string path_, unfinished_;
  int fd_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WEIGHTS_OUTPUT_FILE_H_
