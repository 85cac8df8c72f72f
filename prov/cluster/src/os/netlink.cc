#include "os/netlink.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <vector>

#include "os/descriptor.h"

namespace cluster::os {
namespace {

constexpr std::size_t kAnswerMax = 64 * 1024;  // the kernel fills at most 32 KiB at a time

bool ask(int socket, std::uint16_t request) {
  struct {
    nlmsghdr header;
    rtgenmsg body;
  } message{};
  message.header.nlmsg_len = NLMSG_LENGTH(sizeof message.body);
  message.header.nlmsg_type = request;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.header.nlmsg_seq = 1;
  message.body.rtgen_family = AF_UNSPEC;
  return send(socket, &message, message.header.nlmsg_len, 0) >= 0;
}

enum class DumpState { more, done, failed };

DumpState walk(ConstBytes answer, const std::function<void(ConstBytes)>& visit) {
  while (answer.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, answer.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > answer.size()) return DumpState::failed;
    if (header.nlmsg_type == NLMSG_DONE) return DumpState::done;
    if (header.nlmsg_type == NLMSG_ERROR) return DumpState::failed;
    visit(answer.subspan(sizeof header, header.nlmsg_len - sizeof header));
    const std::size_t step = NLMSG_ALIGN(header.nlmsg_len);
    if (step >= answer.size()) break;
    answer = answer.subspan(step);
  }
  return DumpState::more;
}

}  // namespace

bool netlink_dump(std::uint16_t request, const std::function<void(ConstBytes)>& visit) {
  const Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket || !ask(socket.number(), request)) return false;
  std::vector<std::byte> buffer(kAnswerMax);
  for (;;) {
    const ssize_t got = recv(socket.number(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    const DumpState state = walk({buffer.data(), static_cast<std::size_t>(got)}, visit);
    if (state != DumpState::more) return state == DumpState::done;
  }
}

}  // namespace cluster::os
