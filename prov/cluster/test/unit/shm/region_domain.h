// A domain whose regions other processes reach, with a clock that never waits, and names of endpoints that no other test of
// this process has.
#pragma once

#include <unistd.h>

#include <cstdint>

#include "shm/region_directory.h"
#include "support/fake_environment.h"
#include "support/process_address.h"

namespace cluster::shm {

constexpr std::uint64_t kKey = 0x8000000000000001;

/// One that has not been used.
inline SocketAddress fresh_owner_name() {
  static std::uint16_t next = 0;
  return test::process_address(++next);
}

/// One that is never waited for.
class HastyClock final : public Clock {
 public:
  Time now() override { return now_ += 1s; }

 private:
  Time now_{};
};

struct RegionDomain {
  HastyClock clock;
  test::FakeRandom random{static_cast<std::uint64_t>(::getpid())};
  test::FakeLog log;
  RegionDirectory directory{clock, random, log};
};

}  // namespace cluster::shm
