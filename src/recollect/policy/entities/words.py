"""The words that the rules for entities know: endings of files, suffixes of organisations, given names, no names."""

from __future__ import annotations

FILE_ENDINGS = frozenset(
    """py pyi pyx ipynb js mjs cjs jsx ts tsx vue svelte java kt kts scala go rs c h cc cpp cxx hpp cs fs rb php pl lua
    r jl swift mm m dart ex exs erl hs clj elm ml zig nim sql sh bash zsh fish ps1 bat cmd md mdx rst txt tex adoc org
    log csv tsv json jsonl ndjson yaml yml toml ini cfg conf env xml html htm css scss sass less svg png jpg jpeg gif
    webp ico bmp tiff pdf doc docx xls xlsx ppt pptx odt ods rtf epub zip tar gz tgz bz2 xz zst 7z rar whl jar war deb
    rpm dmg exe dll so dylib bin iso db sqlite sqlite3 parquet onnx pt pth npy npz pkl safetensors proto graphql tf
    tfvars hcl lock patch diff pem crt key mp3 mp4 wav mov avi mkv flac ogg webm ttf woff woff2 wasm map gradle
    properties plist jinja j2 tmpl template service""".split()
)
BARE_ENDINGS = FILE_ENDINGS - frozenset(
    "map key service template properties org so in env bin m d r ex cs swift elm jar war app mod".split()
)
LOGGING = frozenset("console math np numpy torch logger logging log self tf".split())
FILE_NAMES = frozenset(
    """Dockerfile Makefile Jenkinsfile Procfile Vagrantfile Gemfile Rakefile Pipfile Brewfile Justfile Caddyfile
    Containerfile Podfile Fastfile README CHANGELOG CODEOWNERS LICENSE""".split()
)
ROOTS = frozenset(
    """etc usr var home tmp opt bin sbin dev proc mnt srv root lib boot media Users Applications Volumes Library data
    work app workspace""".split()
)
FOLDERS = frozenset(
    """src lib libs tests test docs doc scripts app apps packages pkg cmd internal bin models examples tools config
    node_modules public static assets templates migrations""".split()
)
SCRIPT_LIBRARIES = frozenset(
    """node next vue nuxt express react d3 three ember backbone socket moment chart discord p5 alpine angular deno bun
    nest knockout require""".split()
)
PRODUCTS = frozenset(
    """python pypy node nodejs npm pnpm yarn deno java jdk jre kotlin scala go golang ruby rails php laravel rust perl
    swift typescript django flask fastapi pydantic numpy pandas pytorch torch tensorflow keras react angular vue
    svelte postgres postgresql mysql mariadb sqlite mongodb redis kafka elasticsearch opensearch nginx apache docker
    kubernetes helm terraform ansible git ubuntu debian fedora centos alpine linux kernel macos windows android ios
    chrome firefox safari cuda gcc clang llvm cmake openssl glibc spring gradle maven pip uv poetry ruff mypy pytest
    chromadb version versions ver release releases unity blender""".split()
)
NO_TICKET = frozenset(
    """UTF UCS SHA ISO IEC IEEE GPT COVID SARS AES RSA MD RFC PEP CVE HTTP TLS SSL ECMA ES ARM RTX GTX RX USB CP EN DIN
    CRC WIN CPU GPU TOP FY CY JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC MP DDR PCI LATIN BASE ASCII CTRL ALT CMD
    SHIFT IPV ID NO DSM PG GLP KV MI AN AK MIG SU""".split()
)
NO_MENTION = frozenset(
    """property dataclass staticmethod classmethod override abstractmethod cached_property pytest media import charset
    keyframes param params return returns throws deprecated todo since see author latest next here channel everyone
    all team me test tests before after bean autowired nullable nonnull component injectable input output link code
    rule mock internal value inject""".split()
)
NO_HASHTAG = frozenset(
    "include define ifdef ifndef endif pragma undef elif else if with region endregion import".split()
)
DUNDER = frozenset(
    """init main name file all str repr len call iter next enter exit getattr setattr getitem setitem eq hash new del
    doc dict class slots version post_init pycache dirname filename""".split()
)
NO_IDENTIFIER = frozenset(
    """github gitlab bitbucket youtube javascript typescript coffeescript postgresql mysql mariadb sqlite nosql mongodb
    graphql linkedin whatsapp paypal wordpress facebook iphone ipad ipod imac macos macbook ios ipados watchos airpods
    icloud openai deepmind devops devsecops saas paas iaas phd ebay latex tiktok playstation xbox airbnb docusign
    pytorch tensorflow fastapi duckdb dynamodb cockroachdb influxdb rabbitmq openssl openssh openapi websocket
    websockets oauth ipv4 ipv6 vmware powershell powerpoint onedrive sharepoint dropbox hubspot salesforce servicenow
    circleci jetbrains intellij pycharm webstorm datagrip neovim chatgpt copilot langchain llamaindex huggingface
    stackoverflow hackernews techcrunch mcdonald mcdonalds fedex iot elasticsearch opensearch clickhouse bigquery
    chromadb numpy scipy nodejs nextjs vuejs gmbh kgaa""".split()
)
HOST_ENDINGS = frozenset(
    """com org net edu gov io dev ai app co uk de fr eu ru cn jp ch at nl it es pl se no fi be us ca au br info biz me
    tv cloud local""".split()
)
TITLES = frozenset(
    """mr mrs ms mx dr prof professor sir dame madam judge captain doctor herr frau señor señora monsieur madame mme m
    sra sr rev senator president chancellor minister ambassador uncle aunt""".split()
)
SAYING = frozenset("said says told asked asks replied replies wrote answered explained".split())
DOING = SAYING | frozenset(
    """joined joins works worked lives lived likes loves prefers wants thinks believes met owns owned leads led manages
    managed moved agreed suggested suggests mentioned reported noted decided designed built fixed reviewed approved
    speaks plays enjoys teaches studies studied called emailed visited""".split()
)
BEFORE_PERSON = frozenset(
    """met meet meeting ask asks asked asking tell told call called email emailed contact contacted ping thank thanks cc
    hire hired interviewed visited invited helped joined married by friend friends colleague colleagues manager boss
    wife husband partner brother sister mother father son daughter cousin nephew niece engineer developer designer
    author artist singer actor actress director writer professor teacher doctor client neighbour neighbor reviewer
    maintainer founder ceo cto cfo assignee owner named""".split()
)
BEFORE_THING = frozenset(
    """the a an this that our my your their its in into near at visit visited using use uses via through der die das den
    dem des ein eine einen einem einer im am zum zur le la les un une el los las una il lo""".split()
)
SUFFIXES = frozenset(
    """inc ltd llc llp plc gmbh corp corporation ag sarl bv oy ab pty kgaa limited company foundation institute
    university college ministry association consortium bank group holdings labs laboratories technologies ventures
    partners council committee federation union society museum hospital academy airlines""".split()
)
LEGAL = frozenset("inc ltd llc llp plc gmbh corp sarl pty kgaa corporation".split())
OF = frozenset("university institute ministry bank department college academy museum school".split())
PARTICLES = frozenset("de da di del della van von der den ter ten la le du dos bin al el ibn af zu".split())
GIVEN = frozenset(
    """aaron abigail ada adam adele adrian aiko akira amara anders ayesha bjorn deepak divya emre farah greta haruki
    hiroshi ivana jing kavya keiko kwame lakshmi mehmet mira naoko neha nikhil pooja pradeep rahul rania rohan rohit
    sandeep shreya soren suresh takashi tariq vijay vikram yara yoko yousef youssef zainab zeynep ahmed aisha alan
    alejandro alessandro alexander alexandra alfred ali alice alicia amanda amelia amir amy ana andrea andreas andrew
    angela anita anja anna anne annika anthony anton antonio arjun arthur audrey barbara beatrice ben benjamin bernard
    beth birgit bob boris brandon brian bruno caleb calvin camille carla carlos carmen carol caroline catherine
    cecilia charles charlotte chloe chris christian christina christine christopher claire clara claudia colin connor
    craig cynthia daniel daniela danielle dave david deborah denis derek diana diego dmitri dominic donald dorothy
    douglas dylan edward eleanor elena elias elisabeth elizabeth emily emma eric erik esther ethan eva evan evelyn
    fatima felix fernando fiona francesca francis francisco françois frederick gabriel gareth gary gavin george gerald
    gilbert giovanni giulia gloria gordon graham greg gregory guido gustav hannah hans harold harry hassan heather
    heidi helen helena henrik henry hugo ian ibrahim igor ines ingrid irene isaac isabel isabella ivan jacob jakob
    james jane janet jason javier jeff jeffrey jennifer jenny jeremy jerome jessica jim joan joanna joao joe johanna
    johannes john johnny jon jonas jonathan jorge josé joseph joshua juan judith julian julie julius jürgen justin
    karen karl katarina kate katherine kathleen katie keith kelly ken kenji kenneth kevin khalid kim klaus kristina
    kyle lars laura lauren laurent leila lena leo leon leonard leonardo lewis liam linda lisa lorenzo louis louise
    luca lucas lucia lucy luis luisa lukas luke lydia maja manuel marco marcus margaret maria marie marina mario
    marion markus marta martha martin martina mary mateo mathieu matt matteo matthew matthias maxim maya megan melanie
    melissa michael michel michelle miguel mike mikhail miriam mohamed mohammed monica monika muhammad nadia nancy
    naomi natalia natalie natasha nathan neil nicholas nick nicolas nicole nikita nikolai nina noah nora norman olga
    oliver olivia omar oscar oskar otto pablo pamela patricia patrick paul paula pauline pedro peter petra philip
    philippe phillip pierre pieter priya rachel rafael raj rajesh ralph ravi raymond rebecca renate ricardo richard
    robert roberto robin roger roland ronald rosa rosalind rosemary ruth ryan sabine sally sam samantha samir samuel
    sandra sanjay sara sarah sasha scott sean sebastian sergei sergey sergio sharon shirley silvia simon simone sofia
    sonia sophia sophie stefan stella stephanie stephen steven stuart sunil susan susanne suzanne sven sylvia tanja
    tanya tatiana teresa terry theo theodore theresa thomas tim timothy tina tobias todd tom tomas tommy tony tracy
    travis ulrich ursula valentina vanessa veronica viktor vincent vladimir walter wei wendy wilhelm william wolfgang
    xavier yasmin yuki yusuf yvonne zachary zoe анна алексей александр андрей дмитрий елена иван мария михаил наталья
    alex andy becky ben billy bobby brad cindy dan danny ed eddie frank fred gina jake jamie jill joe joel joey josh
    kate kathy larry lucille mandy marcia matilda meg molly ned nell nigel norma ollie pam peggy phil rick rita ron
    ronnie ross sadie susie ted tess tricia vicky wanda zack
    николай ольга павел сергей татьяна юлия""".split()
)
NO_SINGLE = frozenset(
    "travis marina robin carol alexandra otto ray maxim lena vincent roman sally gloria petra scott".split()
)
PLACES = frozenset(
    """villa villas casa palazzo palais piazza plaza château chateau castle abbey manor lodge inn pub club gallery opera
    trail canyon desert forest boulevard parkway camp maison schloss""".split()
)
NO_PERSON = frozenset(
    """new san los las north south east west northern southern eastern western united saint lake mount great port fort
    cape el rio santa hong kong sri costa tel silicon wall street road avenue park city county river bay beach island
    valley square bridge airport station tower palace church cathedral stadium hotel restaurant cafe bar theatre
    theater machine learning deep artificial intelligence natural language cloud code studio visual server data
    database science computer software hardware engine engineering model api web site service services system systems
    project team office school class department day week month year night morning evening christmas easter
    thanksgiving birthday independence world cup wars war star trek award prize league championship games olympics
    olympic festival google microsoft amazon apple meta facebook twitter netflix tesla nvidia intel ibm oracle adobe
    sony samsung docker kubernetes python java ruby rust linux windows android chrome firefox safari slack zoom teams
    notion figma jira confluence excel word outlook github gitlab stripe visa mastercard spotify uber airbnb claude
    chatgpt gemini postgres redis kafka django flask react angular spring boot vue node next maven jenkins apache
    nginx elastic american british english german french spanish italian chinese japanese european african asian
    indian russian africa america europe asia australia canada china india japan germany france spain italy england
    britain brazil mexico russia ireland scotland london paris berlin york angeles francisco monday tuesday wednesday
    thursday friday saturday sunday january february march april may june july august september october november
    december app application product manager director chief executive officer president senior junior lead head vice
    open source pull request merge issue release version build test tests feature bug fix user users admin customer
    customers support sales marketing legal finance human resources quick start getting started read note todo
    important warning dark mode light theme black red green blue white golden big little old first second third last
    high low good best hat stack overflow hacker news power point the a an this that these those it its he she we they
    you i my our his her their your is are was were be and or but if when while for with from to of in on at by as not
    no yes so then also there here what who how why where which all any some every each more most other only just very
    use using used make made get set add run see can could should would will must might do does did has have had
    please thanks thank hello hi hey dear god mom dad mum nobody everybody everyone someone people anyone one two
    three house car dog cat music video movie book song game gaming art life love peace health care fund bank group
    company inc ltd university college center centre museum hospital library academy institute foundation society
    reddit wikipedia youtube instagram tiktok discord whatsapp telegram linkedin pinterest tumblr quora substack
    bloomberg reuters politico openai anthropic copilot siri alexa cortana llama mistral perplexity
    accounting management procurement security operations compliance payroll
    union association party government parliament congress senate council court ministry army navy police""".split()
)
