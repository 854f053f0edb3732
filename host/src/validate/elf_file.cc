// Finds the dynamic section and the dynamic symbols by the section headers. Every offset is checked against the file.
#include "validate/elf_file.h"

#include <elf.h>

#include <cstring>

#include "dsat/base/files.h"
#include "dsat/error.h"

namespace dsat::host {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}

  template <class T>
  T at(size_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) throw Error("the ELF file is cut off");
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  std::string text(size_t offset) const {
    if (offset >= bytes_.size()) throw Error("the ELF file is cut off");
    return bytes_.substr(offset, bytes_.find('\0', offset) - offset);
  }

 private:
  std::string bytes_;
};

bool is_offered(const Elf64_Sym& symbol) {
  const bool bound = ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL || ELF64_ST_BIND(symbol.st_info) == STB_WEAK;
  const bool seen = ELF64_ST_VISIBILITY(symbol.st_other) == STV_DEFAULT;
  return bound && seen && symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS;
}

}  // namespace

ElfFile read_elf(const std::filesystem::path& file) {
  const Reader elf(read_file(file, kMostBytes));
  const auto header = elf.at<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    throw Error("not a 64-bit ELF file");
  }
  ElfFile found;
  const auto section = [&](size_t i) { return elf.at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)); };
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr part = section(i);
    if (part.sh_type != SHT_DYNAMIC && part.sh_type != SHT_DYNSYM) continue;
    const size_t texts = section(part.sh_link).sh_offset;
    if (part.sh_type == SHT_DYNAMIC) {
      for (size_t at = 0; at + sizeof(Elf64_Dyn) <= part.sh_size; at += sizeof(Elf64_Dyn)) {
        const auto entry = elf.at<Elf64_Dyn>(part.sh_offset + at);
        if (entry.d_tag == DT_NEEDED) found.needed.push_back(elf.text(texts + entry.d_un.d_val));
      }
      continue;
    }
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= part.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = elf.at<Elf64_Sym>(part.sh_offset + at);
      if (is_offered(symbol)) found.exports.push_back(elf.text(texts + symbol.st_name));
    }
  }
  return found;
}

}  // namespace dsat::host
