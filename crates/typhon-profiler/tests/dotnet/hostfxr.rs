//! A .NET runtime inside this process, through the host library that every installation of .NET has.
//!
//! The only unsafe code is what a C interface needs: symbols are looked up by name and called with the types that the
//! .NET documentation of native hosting gives them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

/// Managed `int Method(IntPtr, int)`.
pub(crate) type Function = extern "C" fn(*mut c_void, c_int) -> c_int;

type Handle = *mut c_void;
type Initialize = extern "C" fn(*const c_char, *const Parameters, *mut Handle) -> c_int;
type GetDelegate = extern "C" fn(Handle, c_int, *mut *mut c_void) -> c_int;
type Load = extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
    *mut c_void,
    *mut *mut c_void,
) -> c_int;

/// `hostfxr_initialize_parameters`.
#[repr(C)]
struct Parameters {
    size: usize,
    host_path: *const c_char,
    dotnet_root: *const c_char,
}

/// `hdt_load_assembly_and_get_function_pointer`.
const LOAD_ASSEMBLY_AND_GET_FUNCTION_POINTER: c_int = 5;

/// Starts a runtime of the installation at `dotnet_root`, and gives a static method of an assembly.
pub(crate) fn start(dotnet_root: &Path, config: &Path, assembly: &Path, names: [&str; 2]) -> Function {
    let library = open(&host_library(dotnet_root));
    // SAFETY: the library exports these names with these types.
    let (initialize, get_delegate): (Initialize, GetDelegate) = unsafe {
        (
            std::mem::transmute::<*mut c_void, Initialize>(symbol(
                library,
                c"hostfxr_initialize_for_runtime_config",
            )),
            std::mem::transmute::<*mut c_void, GetDelegate>(symbol(library, c"hostfxr_get_runtime_delegate")),
        )
    };
    let root = text(dotnet_root);
    let parameters =
        Parameters { size: size_of::<Parameters>(), host_path: ptr::null(), dotnet_root: root.as_ptr() };
    let mut handle = ptr::null_mut();
    check(
        initialize(text(config).as_ptr(), &parameters, &mut handle),
        "hostfxr_initialize_for_runtime_config",
    );
    let mut load = ptr::null_mut();
    check(
        get_delegate(handle, LOAD_ASSEMBLY_AND_GET_FUNCTION_POINTER, &mut load),
        "hostfxr_get_runtime_delegate",
    );
    // SAFETY: the delegate that was asked for has this type.
    let load = unsafe { std::mem::transmute::<*mut c_void, Load>(load) };
    let [type_name, method] = names.map(|name| CString::new(name).unwrap());
    let mut function = ptr::null_mut();
    let loaded = load(
        text(assembly).as_ptr(),
        type_name.as_ptr(),
        method.as_ptr(),
        ptr::null(),
        ptr::null_mut(),
        &mut function,
    );
    check(loaded, "load_assembly_and_get_function_pointer");
    // SAFETY: without the name of a delegate type the method has this one.
    unsafe { std::mem::transmute::<*mut c_void, Function>(function) }
}

/// `host/fxr/VERSION/libhostfxr.so`, of whatever version there is.
fn host_library(dotnet_root: &Path) -> PathBuf {
    let versions = std::fs::read_dir(dotnet_root.join("host/fxr")).unwrap();
    let newest = versions.map(|version| version.unwrap().path()).max().unwrap();
    newest.join("libhostfxr.so")
}

fn open(path: &Path) -> *mut c_void {
    // SAFETY: the path is a terminated string, and loading the library runs none of our code.
    let library = unsafe { libc::dlopen(text(path).as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null(), "{} cannot be loaded", path.display());
    library
}

fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the library was opened and is never closed.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!symbol.is_null(), "{name:?} is not exported");
    symbol
}

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap()
}

/// Negative codes are failures; positive ones say what the runtime found in place.
fn check(code: c_int, what: &str) {
    assert!(code >= 0, "{what}: {code:#x}");
}
