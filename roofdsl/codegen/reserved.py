"""Words that generated C or CUDA must not declare: keywords, macros, types, and names that its headers declare.

They were collected from the standards (C11 to C23, C++17 to C++23) and from what gcc, glibc, nvcc and NVRTC refuse with
all extensions enabled, because users compile emitted text with other flags than we do. `tests/codegen/test_names.py`
compiles kernels named after words in the headers of this machine, with `--thorough` after all of them. A superfluous
word only costs an underscore.
"""

from __future__ import annotations

import re

from roofdsl.codegen.syntax import words

_KEYWORDS = words(
    "alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case "
    "catch char char16_t char32_t char8_t class co_await co_return co_yield compl complex concept const const_cast "
    "consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if imaginary inline int long mutable namespace new noexcept noreturn not "
    "not_eq nullptr operator or or_eq private protected public reflexpr register reinterpret_cast requires restrict "
    "return short signed sizeof static static_assert static_cast struct switch synchronized template this "
    "thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void "
    "volatile wchar_t while xor xor_eq"
)

_MACROS = words(
    "BUFSIZ BYTE_ORDER CHAR_BIT DOMAIN EOF FALSE HUGE I INFINITY L_ctermid L_cuserid L_tmpnam MAXFLOAT NAN NFDBITS "
    "NULL NZERO OVERFLOW PIC PLOSS PPC P_tmpdir SING TLOSS TRUE UNDERFLOW WIN32 X_TLOSS alloca assert assert_perror "
    "errno far fpclassify hpux i386 iscanonical iseqsig isfinite isgreater isgreaterequal isinf isless islessequal "
    "islessgreater isnan isnormal issignaling issubnormal isunordered iszero linux math_errhandling mips near "
    "offsetof setjmp signbit sparc stderr stdin stdout strdupa strndupa sun unix va_arg va_list vax"
)

_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+(f\d*x?|l)?",  # in the spelling of macros: M_PI, INT64_MAX, CUDA_VERSION, M_PIf
        r"(HUGE_VAL|SNAN|CMPLX|CUDART)\w*",
        r"W(EXITED|CONTINUED|STOPPED|UNTRACED|NOHANG|NOWAIT|EXITSTATUS|TERMSIG|STOPSIG|COREDUMP|IF[A-Z]+)",
        r"(strfrom|strto|ato)[a-z0-9]+(_l)?|(clock|timer|timespec)_\w+",
        r"\w+_t",  # types of POSIX
        r"(omp|cuda|cudart|nv|pthread)_\w+|(cuda|cu|nv)[A-Z]\w*",
        r"(f(32|64)x?|[fd])(add|sub|mul|div|fma|sqrt)(f(32|64|128)x?|l)?",
        r"(make|atomic|tex|surf)[_A-Z]\w*|(atomic|tex|surf)[1-3A-Z]\w*",
        r"u?(char|short|int|long|longlong|float|double)[1-4](_(16|32)a)?",
    )
)

_FLOATING = words(
    "acos acosh acospi asin asinh asinpi atan atan2 atan2pi atanh atanpi cabs cacos cacosh canonicalize carg casin "
    "casinh catan catanh cbrt ccos ccosh ceil cexp cimag clog clog10 conj copysign cos cosh cospi cpow cproj creal "
    "csin csinh csqrt ctan ctanh cyl_bessel_i0 cyl_bessel_i1 drem erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 "
    "fabs fdim fdivide finite floor fma fmax fmaximum fmaximum_mag fmaximum_mag_num fmaximum_num fmaxmag fmin "
    "fminimum fminimum_mag fminimum_mag_num fminimum_num fminmag fmod frexp fromfp fromfpx gamma getpayload hypot "
    "ilogb isinf isnan j0 j1 jn ldexp lgamma llogb llrint llround log log10 log1p log2 logb lrint lround modf nan "
    "nearbyint nextafter nextdown nexttoward nextup norm norm3d norm4d normcdf normcdfinv pow pow10 powi rcbrt "
    "remainder remquo rhypot rint rnorm rnorm3d rnorm4d round roundeven rsqrt saturate scalb scalbln scalbn "
    "setpayload setpayloadsig signbit signgam significand sin sincos sincospi sinh sinpi sqrt strfromd strtod tan "
    "tanh tanpi tgamma totalorder totalordermag trunc ufromfp ufromfpx y0 y1 yn"
)

_SUFFIX = re.compile(r"(.+?)(f|l|f16|f32|f64|f128|f32x|f64x|d32|d64|d128|q)(_r)?")
"""Floating-point functions have one name for each type: `sinf`, `sinl`, `sinf128`."""

_LIBRARY = words(
    "FILE a64l abort abs aligned_alloc arc4random arc4random_buf arc4random_uniform asctime asprintf at_quick_exit "
    "atexit atof atoi atol atoll basename bcmp bcopy be16toh be32toh be64toh bsearch bzero calloc "
    "canonicalize_file_name clearenv clearerr clock ctermid ctime cuserid daylight dcgettext dgettext difftime div "
    "dprintf drand48 dysize ecvt environ erand48 execl execle execlp execv execve execvp exit explicit_bzero fclose "
    "fcloseall fcvt fd_mask fd_set fdopen feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feof "
    "feraiseexcept ferror fesetenv fesetexceptflag fesetround fetestexcept feupdateenv fflush ffs ffsl ffsll fgetc "
    "fgetpos fgets fileno flockfile fmemopen fopen fopencookie fork fprintf fputc fputs fread free freopen fscanf "
    "fseek fseeko fsetpos ftell ftello ftrylockfile funlockfile fwrite gcvt getc getchar getdate getdate_err getdelim "
    "getenv getline getloadavg getpt getsubopt gettext getw gmtime grantpt htobe16 htobe32 htobe64 htole16 htole32 "
    "htole64 imaxabs imaxdiv index initstate isalnum isalpha isascii isblank iscntrl isctype isdigit isgraph islower "
    "isprint ispunct isspace isupper iswalnum iswalpha iswblank iswcntrl iswdigit iswgraph iswlower iswprint iswpunct "
    "iswspace iswupper iswxdigit isxdigit jrand48 l64a labs lcong48 ldiv le16toh le32toh le64toh llabs lldiv llmax "
    "llmin localtime lrand48 main malloc max mblen mbstowcs mbtowc memccpy memchr memcmp memcpy memfrob memmem "
    "memmove mempcpy memrchr memset min mkdtemp mkostemp mkostemps mkstemp mkstemps mktemp mktime mrand48 nanosleep "
    "nrand48 nv obstack_printf obstack_vprintf on_exit open_memstream pclose perror popen posix_memalign posix_openpt "
    "printf pselect ptsname putc putchar putenv puts putw qecvt qfcvt qgcvt qsort quick_exit raise rand random "
    "rawmemchr realloc reallocarray realpath remove rename renameat renameat2 rewind rindex rpmatch scanf "
    "secure_getenv seed48 select setbuf setbuffer setenv setlinebuf setstate setvbuf sigabbrev_np sigdescr_np signal "
    "snprintf sprintf srand srand48 srandom sscanf std stime stpcpy stpncpy strcasecmp strcasestr strcat strchr "
    "strchrnul strcmp strcoll strcpy strcspn strdup strerror strerrordesc_np strerrorname_np strfmon strfry strftime "
    "strlen strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strptime strrchr strsep strsignal strspn "
    "strstr strtof strtok strtol strtold strtoll strtoq strtoul strtoull strtouq strverscmp strxfrm system tempnam "
    "time timegm timelocal timezone tmpfile tmpnam toascii tolower toupper towlower towupper tuple tzname tzset "
    "u_char u_int u_long u_short uchar uint ullmax ullmin ulong umax umin ungetc unlockpt unsetenv ushort valloc "
    "vasprintf vdprintf vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf wcstombs wctomb"
)

_CUDA = words("CUuuid blockDim blockIdx clock64 dim3 gridDim half half2 libraryPropertyType threadIdx warpSize")

_LIBRARY_FORMS = re.compile(r"(\w+?)(_r|_l|_unlocked|64|_locale)")


def is_reserved(word: str) -> bool:
    """Whether a word already has a meaning in C, C++ or CUDA, or may have one in their headers."""
    if word.startswith("_") or word in _ALL or any(pattern.fullmatch(word) for pattern in _PATTERNS):
        return True
    of_type, form = _SUFFIX.fullmatch(word), _LIBRARY_FORMS.fullmatch(word)
    if of_type is not None and of_type[1] in _FLOATING:
        return True
    return form is not None and (form[1] in _LIBRARY or form[1] in _FLOATING)


_ALL = _KEYWORDS | _MACROS | _FLOATING | _LIBRARY | _CUDA
