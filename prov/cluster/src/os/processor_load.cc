#include "os/processor_load.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "os/descriptor.h"

namespace cluster::os {
namespace {

unsigned processors() {
  static const long online = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
  return static_cast<unsigned>(online);
}

}  // namespace

/// The file contains three averages, and then RUNNING/ALL, the numbers of threads.
unsigned threads_per_processor(const char* path) {
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  char text[64] = {};
  if (!file || ::read(file.number(), text, sizeof text - 1) <= 0) return 1;
  const char* word = text;
  for (int i = 0; i < 3 && word != nullptr; ++i) {
    word = std::strchr(word, ' ');
    if (word != nullptr) ++word;
  }
  if (word == nullptr) return 1;
  const unsigned long running = std::strtoul(word, nullptr, 10);
  return static_cast<unsigned>(std::max(1ul, (running + processors() - 1) / processors()));
}

}  // namespace cluster::os
