// Initiators that say, rightly or not, that they use a region: how long its close waits for them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "shm/region_directory.h"
#include "support/failing_memory.h"
#include "unit/shm/region_domain.h"

namespace cluster::shm {
namespace {

/// An initiator that says for ever that it uses a region.
class UsedForEver {
 public:
  enum class Says : std::uint8_t { in_use, ended };
  explicit UsedForEver(const SocketAddress& name, Says says = Says::in_use) {
    EXPECT_EQ(::pipe(ready_), 0);
    process_ = ::fork();
    if (process_ == 0) use(name, says);
    char none;
    EXPECT_EQ(::read(ready_[0], &none, 1), 1);
  }
  ~UsedForEver() { end(); }
  void end() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
    process_ = 0;
  }

 private:
  [[noreturn]] void use(const SocketAddress& name, Says says) {
    std::string reason;
    os::LocalSocket socket = os::LocalSocket::connect(region_socket_name(name), reason);
    os::Descriptor file;
    const os::SharedMemory page = os::SharedMemory::create(sizeof(UsePage), file, reason);
    const RegionHello hello;
    socket.send(as_bytes(&hello, sizeof hello), file, reason);
    RegionWelcome welcome;
    os::Descriptor table_file;
    socket.wait_for_message(std::chrono::seconds(10));
    socket.receive(as_bytes(&welcome, sizeof welcome), &table_file);
    const os::SharedMemory table = os::SharedMemory::map_to_read(table_file, RegionEntries::kBytes, reason);
    const std::uint32_t entry = RegionEntries(table.bytes()).find(kKey, RegionEntry::kLive);
    auto* const uses = reinterpret_cast<UsePage*>(page.bytes().data());
    uses->entry = entry + 1;
    uses->ended = says == Says::ended ? 1 : 0;
    socket = {};  // it means nothing once the welcome has come
    // The table itself cannot be written: the attempt to make it so is refused.
    if (os::SharedMemory::map(table_file, RegionEntries::kBytes, reason)) ::_exit(1);
    [[maybe_unused]] const ssize_t sent = ::write(ready_[1], "", 1);
    for (;;) ::pause();
  }

  int ready_[2] = {-1, -1};
  pid_t process_ = 0;
};

TEST(RegionUse, DelaysACloseForABoundedTimeAndEndsWithItsProcess) {
  RegionDomain domain;
  const SocketAddress name = fresh_owner_name();
  domain.directory.offer(kKey, {.length = 8, .readable = true});
  domain.directory.offer(kKey + 1, {.length = 8, .readable = true});
  const std::shared_ptr<void> served = domain.directory.serve(name, false, false);
  UsedForEver user(name);
  const auto without_memory = [&] {
    const test::FailingMemory none(0);
    return domain.directory.withdraw(kKey + 1);
  };
  EXPECT_TRUE(without_memory()) << "another region than the one in use";
  EXPECT_FALSE(domain.directory.withdraw(kKey));
  EXPECT_FALSE(domain.directory.withdraw(kKey)) << "and so it stays";
  EXPECT_EQ(domain.log.lines.size(), 2u);
  user.end();
  EXPECT_TRUE(domain.directory.withdraw(kKey));
}

TEST(RegionUse, OutlivesTheEndpointItCameThrough) {
  RegionDomain domain;
  const SocketAddress name = fresh_owner_name();
  domain.directory.offer(kKey, {.length = 8, .readable = true});
  std::shared_ptr<void> served = domain.directory.serve(name, false, false);
  UsedForEver user(name);
  served.reset();
  EXPECT_FALSE(domain.directory.withdraw(kKey));
  user.end();
  EXPECT_TRUE(domain.directory.withdraw(kKey));
}

TEST(RegionUse, IsOverWhenTheInitiatorSaysThatItHasEnded) {
  RegionDomain domain;
  const SocketAddress name = fresh_owner_name();
  domain.directory.offer(kKey, {.length = 8, .readable = true});
  const std::shared_ptr<void> served = domain.directory.serve(name, false, false);
  const UsedForEver user(name, UsedForEver::Says::ended);
  EXPECT_TRUE(domain.directory.withdraw(kKey));
  EXPECT_TRUE(domain.log.lines.empty());
}

}  // namespace
}  // namespace cluster::shm
