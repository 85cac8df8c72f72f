#include "relay/keep_alive_answer.h"

#include <cstring>

#include "seal/keep_alive_seal.h"
#include "wire/relay_frame.h"

namespace cluster::relay {

static_assert(sizeof(seal::KeepAliveAnswer) + sizeof(wire::RelayTag) <= kAnswerMax);

/// Through a relay, a peer asks the name of the endpoint, whatever the address of the rail is.
std::size_t answer_keep_alive(const seal::Credentials& credentials, ConstBytes datagram,
                              const SocketAddress& name, const SocketAddress& asked, Bytes out) {
  wire::RelayTag tag;
  const std::size_t length = wire::tagged_frame(datagram, tag);
  const bool relayed = length != 0 && length + sizeof tag == datagram.size();
  const ConstBytes frame = relayed ? datagram.first(length) : datagram;
  seal::KeepAliveAnswer answer;
  if (!seal::answer_keep_alive(credentials, frame, relayed ? name : asked, answer)) return 0;
  std::memcpy(out.data(), answer.data(), answer.size());
  if (!relayed) return answer.size();
  tag.hops = wire::kRelayHops;
  std::memcpy(out.data() + answer.size(), &tag, sizeof tag);
  return answer.size() + sizeof tag;
}

}  // namespace cluster::relay
