#include "modules/rebind.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mixdown {
namespace {

struct Job {
  const char* library;
  const char* function;
  void* to;
  int places = 0;
};

// What the dynamic section says of a library. Linux's own linker has turned most
// of its offsets into addresses.
class Dynamic {
 public:
  Dynamic(const dl_phdr_info& object, const ElfW(Dyn) * entries) : base_(object.dlpi_addr) {
    for (; entries->d_tag != DT_NULL; ++entries) {
      switch (entries->d_tag) {
        case DT_SYMTAB:
          symbols_ = at<ElfW(Sym)>(entries);
          break;
        case DT_STRTAB:
          names_ = at<char>(entries);
          break;
        case DT_RELA:
          tables_[0].first = at<ElfW(Rela)>(entries);
          break;
        case DT_RELASZ:
          tables_[0].bytes = entries->d_un.d_val;
          break;
        case DT_JMPREL:
          tables_[1].first = at<ElfW(Rela)>(entries);
          break;
        case DT_PLTRELSZ:
          tables_[1].bytes = entries->d_un.d_val;
          break;
        case DT_PLTREL:
          with_addends_ = entries->d_un.d_val == DT_RELA;
          break;
        default:
          break;
      }
    }
  }

  // Of each place that holds the address of the function.
  template <typename Visit>
  void each(const char* function, Visit visit) const {
    if (symbols_ == nullptr || names_ == nullptr || !with_addends_) return;
    for (const Table& table : tables_) {
      if (table.first == nullptr) continue;
      for (const ElfW(Rela)* r = table.first; r < table.first + table.bytes / sizeof *r; ++r) {
        const size_t symbol = symbol_of(r->r_info);
        if (symbol == 0 || r->r_addend != 0 || std::strcmp(names_ + symbols_[symbol].st_name, function) != 0) continue;
        visit(reinterpret_cast<void**>(base_ + r->r_offset));
      }
    }
  }

 private:
  struct Table {
    const ElfW(Rela) * first = nullptr;
    size_t bytes = 0;
  };

  static size_t symbol_of(ElfW(Xword) info) {
#if __ELF_NATIVE_CLASS == 64
    return ELF64_R_SYM(info);
#else
    return ELF32_R_SYM(info);
#endif
  }

  template <typename T>
  const T* at(const ElfW(Dyn) * entry) const {
    const ElfW(Addr) value = entry->d_un.d_ptr;
    return reinterpret_cast<const T*>(value < base_ ? base_ + value : value);
  }

  ElfW(Addr) base_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  Table tables_[2];
  bool with_addends_ = true;
};

// The linker leaves some of its tables without the right to write.
bool write(void** place, void* value) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* const start = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(place) / page * page);
  if (mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(place, value, __ATOMIC_RELEASE);
  return true;
}

int visit(dl_phdr_info* object, size_t, void* data) {
  Job& job = *static_cast<Job*>(data);
  const char* slash = std::strrchr(object->dlpi_name, '/');
  const char* name = slash == nullptr ? object->dlpi_name : slash + 1;
  if (std::strncmp(name, job.library, std::strlen(job.library)) != 0) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    const Dynamic dynamic(*object, reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + header.p_vaddr));
    dynamic.each(job.function, [&](void** place) {
      if (*place == job.to || write(place, job.to)) ++job.places;
    });
  }
  return 0;
}

}  // namespace

int rebind(const char* library, const char* function, void* to) {
  Job job = {library, function, to};
  dl_iterate_phdr(visit, &job);
  return job.places;
}

}  // namespace mixdown
