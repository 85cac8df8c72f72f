// Hands the table of a domain to initiators, for one endpoint. The progress thread serves, so the target's
// application need not make a call. An initiator connects, sends its use page, and is answered at once; one
// that sends nothing is dropped after some milliseconds, and the next one waits that long. Where the endpoint has a
// key both show it first (shm/greeting.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "os/local_socket.h"
#include "os/progress_thread.h"
#include "shm/greeting.h"
#include "shm/region_hello.h"
#include "shm/region_users.h"

namespace cluster::shm {

class RegionServer {
 public:
  /// `table`, of which `welcome` speaks, and `users` outlive it.
  RegionServer(const SocketAddress& endpoint, const RegionWelcome& welcome, const os::Descriptor& table,
               RegionUsers& users, Random& random, Log& log)
      : endpoint_(endpoint), welcome_(welcome), table_(table), users_(users), random_(random), log_(log) {}
  RegionServer(const RegionServer&) = delete;
  RegionServer& operator=(const RegionServer&) = delete;
  /// Waits for accesses under way.
  ~RegionServer();

  /// Listens, once; the log says why that is not possible. `keys`: of the endpoint.
  void start(const seal::JobKeys& keys);

 private:
  os::NextWake serve();
  bool accept();
  bool answer();
  void dismiss();

  const SocketAddress endpoint_;
  const RegionWelcome welcome_;
  const os::Descriptor& table_;
  RegionUsers& users_;
  Random& random_;
  Log& log_;
  KeyedListener listener_;
  std::optional<HelloReceiver> initiator_;  ///< accepted, and its hello has not come
  bool waited_ = false;                     ///< for that
  os::LocalSocket dismissed_;  ///< closed in the next call, when the progress thread does not watch it
  std::shared_ptr<void> progress_client_;
};

}  // namespace cluster::shm
