// Files that a power cut or a kill leaves whole or absent.
//
// Threading: none of its own. Errors: dsat::Error that names the file.
#ifndef DSAT_TRAINER_FILES_DURABLE_FILE_H_
#define DSAT_TRAINER_FILES_DURABLE_FILE_H_

#include <cstddef>
#include <string>

namespace dsat::trainer {

// A file being written; what was there is gone. Closed on every way out.
class NewFile {
 public:
  // `shown`: how errors name it; empty: as `path`.
  explicit NewFile(const std::string& path, std::string shown = {});
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, size_t bytes);
  void sync();  // until the disk has it

 private:
  std::string shown_;
  int fd_;
};

// Makes names that were created, renamed or removed in a folder last.
void sync_folder(const std::string& path);

// A reader sees the whole text or what was there before. The folder must exist.
void write_text_atomically(const std::string& path, const std::string& text);

// Gives the folder `from` the name `to`, both in the folder `parent`, in one step. If there is a folder of that name,
// the two change places: `from` is then the old one.
void put_folder_in_place(const std::string& parent, const std::string& from, const std::string& to);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_FILES_DURABLE_FILE_H_
