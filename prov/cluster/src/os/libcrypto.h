// Implements the primitives of crypto/ with OpenSSL's libcrypto, and AES-128-GCM with Intel's Multi-Buffer
// Crypto for IPsec where that is installed. The plugin looks for the libraries when the first key is used. So
// it depends on no version of them, and also loads where they are missing. The libraries stay loaded, because
// their objects outlive everything that could close them.
#pragma once

#include <memory>
#include <string>

#include "crypto/cryptography.h"

namespace cluster::os {

/// Loads libcrypto. Returns null if no version 3 or 1.1 can be loaded, or if the one found does not compute
/// what the RFCs say; `reason` says why.
std::shared_ptr<const crypto::Cryptography> load_libcrypto(std::string& reason);

/// Returns `other` with AES-128-GCM replaced by that of libIPSec_MB. Returns `other` itself, which may be
/// null, if that library is missing or computes something else. With it, a frame costs a third to a fifth of
/// what it costs with libcrypto: a call has no state to look up, and the library uses the wide AES
/// instructions of newer processors. Both seal frames to the same bytes.
std::shared_ptr<const crypto::Cryptography> prefer_ipsec_mb(
    std::shared_ptr<const crypto::Cryptography> other);

}  // namespace cluster::os
