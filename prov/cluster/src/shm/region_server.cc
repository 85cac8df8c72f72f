#include "shm/region_server.h"

#include <utility>

#include "os/error_text.h"

namespace cluster::shm {
namespace {

constexpr Duration kHelloMax = 5ms;
constexpr Duration kSignedHelloMax = 50ms;  ///< the initiator has to wake up for it

}  // namespace

std::string region_socket_name(const SocketAddress& endpoint) {
  std::string text = "cluster-regions-" + std::to_string(kRegionVersion) + "/" + endpoint.text();
  // A link-local address may exist once per interface.
  if (endpoint.scope() != 0) text += "%" + std::to_string(endpoint.scope());
  return text;
}

RegionServer::~RegionServer() {
  progress_client_.reset();
  users_.revoke(this);
}

void RegionServer::start(const seal::JobKeys& keys) {
  if (progress_client_ != nullptr) return;
  std::string reason;
  listener_ = KeyedListener::listen(keyed_names(region_socket_name(endpoint_), keys), reason);
  if (listener_) {
    int error = 0;
    progress_client_ = os::start_progress_client([this] { return serve(); }, error);
    if (progress_client_ != nullptr) return;
    reason = os::error_text(error);
    listener_ = {};
  }
  log_.info(
      "peers of this node cannot reach the memory of endpoint %s themselves (%s): its library serves them",
      endpoint_.text().c_str(), reason.c_str());
}

/// One call of the progress thread.
os::NextWake RegionServer::serve() {
  dismissed_ = {};
  if (!initiator_ && !accept()) return {os::NextWake::kUntilReadable, listener_.descriptor()};
  if (initiator_ && !answer()) {
    const Duration most = initiator_->answered() ? kSignedHelloMax : kHelloMax;
    if (!std::exchange(waited_, true)) return {most, initiator_->socket().descriptor()};
    dismiss();
  }
  waited_ = false;
  return {Duration::zero()};
}

void RegionServer::dismiss() {
  dismissed_ = initiator_->take_socket();
  initiator_.reset();
}

/// True if an initiator has come, also one that is refused.
bool RegionServer::accept() {
  std::string reason;
  KeyedSocket connection = listener_.accept(reason);
  if (!connection.socket) return false;
  if (connection.socket.same_user()) initiator_.emplace(std::move(connection), random_);
  return true;
}

/// False if the hello has not come.
bool RegionServer::answer() {
  RegionHello hello;
  os::Descriptor page;
  const bool answered = initiator_->answered();
  const HelloReceiver::Receipt receipt = initiator_->receive(as_bytes(&hello, sizeof hello), page);
  if (receipt == HelloReceiver::Receipt::nothing) {
    if (initiator_->answered() != answered) waited_ = false;
    return false;
  }
  dismiss();
  if (receipt != HelloReceiver::Receipt::hello || hello.magic != RegionHello::kMagic) return true;
  std::string reason;
  os::SharedMemory memory = os::SharedMemory::map(page, sizeof(UsePage), reason);
  if (!memory) return true;
  users_.forget_gone();
  // It is among the users before it can use anything.
  users_.add(dismissed_, std::move(memory), this, [&](const os::LocalSocket& user) {
    user.send(as_bytes(&welcome_, sizeof welcome_), table_, reason);
  });
  return true;
}

}  // namespace cluster::shm
