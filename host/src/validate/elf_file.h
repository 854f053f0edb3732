// Reads what a shared library needs and exports, without running any of it.
// Threading: a pure function. Errors: dsat::Error: the file cannot be read, or is no 64-bit ELF file of this byte
// order.
#ifndef DSAT_HOST_VALIDATE_ELF_FILE_H_
#define DSAT_HOST_VALIDATE_ELF_FILE_H_

#include <filesystem>
#include <string>
#include <vector>

namespace dsat::host {

struct ElfFile {
  std::vector<std::string> needed;   // DT_NEEDED
  std::vector<std::string> exports;  // defined symbols to which other libraries can bind
};

ElfFile read_elf(const std::filesystem::path& file);

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_ELF_FILE_H_
