// Memory that two processes of a node map, a part for each direction: each side writes into its own and reads the other's.
// It has a name in /dev/shm only until both have mapped it.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "control_connection.h"

namespace perf {

template <typename Part>
class SharedPair {
 public:
  explicit SharedPair(ControlConnection& line) {
    const std::string name = "/fabric_perf_" + std::to_string(::getpid());
    const int made = ::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (made < 0 || ::ftruncate(made, sizeof(Part)) != 0) throw std::runtime_error("no shared memory");
    mine_ = map(made);
    const std::string others = line.exchange(name);
    const int found = ::shm_open(others.c_str(), O_RDWR | O_CLOEXEC, 0);
    if (found < 0) throw std::runtime_error("the other side is not on this node");
    theirs_ = map(found);
    line.exchange("mapped");
    ::shm_unlink(name.c_str());
  }
  SharedPair(const SharedPair&) = delete;
  SharedPair& operator=(const SharedPair&) = delete;
  ~SharedPair() {
    ::munmap(mine_, sizeof(Part));
    ::munmap(theirs_, sizeof(Part));
  }

  Part& mine() { return *mine_; }
  Part& theirs() { return *theirs_; }

 private:
  static Part* map(int file) {
    void* const at =
        ::mmap(nullptr, sizeof(Part), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    ::close(file);
    if (at == MAP_FAILED) throw std::runtime_error("shared memory cannot be mapped");
    return static_cast<Part*>(at);
  }

  Part* mine_;
  Part* theirs_;
};

}  // namespace perf
