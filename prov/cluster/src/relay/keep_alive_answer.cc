#include "relay/keep_alive_answer.h"

#include <cstring>

#include "seal/keep_alive_seal.h"
#include "wire/relay_frame.h"

namespace cluster::relay {

namespace {

/// Returns true if the keep-alive may have come on this way.
bool asks_here(ConstBytes frame, bool relayed) {
  wire::FrameHeader header;
  if (frame.size() < sizeof header) return false;
  std::memcpy(&header, frame.data(), sizeof header);
  const auto way = static_cast<wire::AskedWay>(std::uint32_t{header.largest_acked});
  return way != (relayed ? wire::AskedWay::direct : wire::AskedWay::relayed);
}

}  // namespace

static_assert(sizeof(seal::KeepAliveAnswer) + sizeof(wire::RelayTag) <= kAnswerMax);

/// Through a relay, a peer asks the name of the endpoint, whatever the address of the rail is. `name` is the
/// name that the endpoint had at first. If the address of its only rail was replaced, that is its name now.
std::size_t answer_keep_alive(const seal::Credentials& credentials, ConstBytes datagram,
                              const SocketAddress& name, const SocketAddress& asked, Bytes out) {
  wire::RelayTag tag;
  const std::size_t length = wire::tagged_frame(datagram, tag);
  const bool relayed = length != 0 && length + sizeof tag == datagram.size();
  const ConstBytes frame = relayed ? datagram.first(length) : datagram;
  seal::KeepAliveAnswer answer;
  const bool answered =
      asks_here(frame, relayed) && (seal::answer_keep_alive(credentials, frame, asked, answer) ||
                                    (relayed && seal::answer_keep_alive(credentials, frame, name, answer)));
  if (!answered) return 0;
  std::memcpy(out.data(), answer.data(), answer.size());
  if (!relayed) return answer.size();
  tag.hops = wire::kRelayHops;
  std::memcpy(out.data() + answer.size(), &tag, sizeof tag);
  return answer.size() + sizeof tag;
}

}  // namespace cluster::relay
