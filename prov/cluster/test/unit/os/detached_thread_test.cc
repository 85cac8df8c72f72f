// Descriptors that are closed by a thread of their own.
#include "os/detached_thread.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <vector>

#include "os/system_clock.h"

namespace cluster::os {
namespace {

TEST(CloseAside, TheDescriptorIsClosed) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor reader(ends[0]);
  close_aside(Descriptor(ends[1]));
  pollfd end{reader.number(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 20'000), 1);
  EXPECT_EQ(end.revents, POLLHUP);
  close_aside({});
}

/// The other end of a TCP connection reads nothing, so the close waits as long as SO_LINGER says.
TEST(CloseAside, TheCallerDoesNotWait) {
  const Descriptor door(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  auto* const generic = reinterpret_cast<sockaddr*>(&name);
  ASSERT_EQ(::bind(door.number(), generic, size), 0);
  ASSERT_EQ(::listen(door.number(), 1), 0);
  ASSERT_EQ(::getsockname(door.number(), generic, &size), 0);
  Descriptor slow(::socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(::connect(slow.number(), generic, size), 0);
  const std::vector<std::byte> bytes(1 << 20);
  while (::send(slow.number(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  const linger patience{1, 20};
  ASSERT_EQ(::setsockopt(slow.number(), SOL_SOCKET, SO_LINGER, &patience, sizeof patience), 0);
  SystemClock clock;
  const Time begin = clock.now();
  close_aside(std::move(slow));
  EXPECT_LT(clock.now() - begin, 10s);
}

}  // namespace
}  // namespace cluster::os
